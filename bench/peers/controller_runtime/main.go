// The peer on controller-runtime: peer operate|read|sync|webhooks, with the server in KUBECONFIG.
//
//   - operate: the operator of the Widget workload.
//   - read: a reconciler that only reads the Widget from the cache and notes the age of its stamp.
//   - sync: a cache of Widgets and nothing else.
//   - webhooks: admission of Widgets and Pods, without an API server; see webhooks.go. It prints "serving".
//
// "synced" on standard output reports that the cache has all Widgets. SIGUSR1 enqueues every cached Widget REQUEUES times, each time after the time before has been worked off, and then
// prints "requeued". SIGTERM ends the program, which then prints what it counted on standard output, as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const workers = 16

type counted struct {
	Reconciles int64   `json:"reconciles"`
	Latencies  []int64 `json:"latencies"`
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(mode string) error {
	ctrl.SetLogger(zap.New())
	ctx := ctrl.SetupSignalHandler()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientscheme.AddToScheme, addWidgets)
	if err := builder.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// No limit of its own: the server's priority and fairness is the limit.
	config.QPS = -1
	options := ctrl.Options{
		Scheme: scheme,
		// The metrics server is on, as by default, but on any free port.
		Metrics: server.Options{BindAddress: "127.0.0.1:0"},
	}
	if mode == "webhooks" {
		if options.WebhookServer, err = webhookServer(); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	switch mode {
	case "webhooks":
		if err := addWebhooks(mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	case "operate":
		reconciler := &operator{Client: mgr.GetClient(), events: mgr.GetEventRecorder("widgets")}
		requeue := make(chan event.TypedGenericEvent[*Widget])
		err = ctrl.NewControllerManagedBy(mgr).
			For(&Widget{}).
			Owns(&corev1.ConfigMap{}).
			WatchesRawSource(source.Channel(requeue, &handler.TypedEnqueueRequestForObject[*Widget]{})).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
			Complete(reconciler)
		if err != nil {
			return err
		}
		return start(ctx, mgr, requeue, &reconciler.reconciles, func() []int64 { return nil })
	case "read":
		reconciler := &reader{
			Client:  mgr.GetClient(),
			started: time.Now().UnixNano(),
			seen:    map[types.NamespacedName]string{},
		}
		requeue := make(chan event.TypedGenericEvent[*Widget])
		err = ctrl.NewControllerManagedBy(mgr).
			For(&Widget{}).
			WatchesRawSource(source.Channel(requeue, &handler.TypedEnqueueRequestForObject[*Widget]{})).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
			Complete(reconciler)
		if err != nil {
			return err
		}
		return start(ctx, mgr, requeue, &reconciler.reconciles, func() []int64 { return reconciler.latencies })
	case "sync":
		err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return synced(ctx, mgr) }))
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	return fmt.Errorf("there is no mode %q (there are: operate, read, sync, webhooks)", mode)
}

func start(
	ctx context.Context,
	mgr manager.Manager,
	requeue chan event.TypedGenericEvent[*Widget],
	reconciles *atomic.Int64,
	latencies func() []int64,
) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		if err := synced(ctx, mgr); err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-signals:
				if err := requeueAll(ctx, mgr.GetClient(), requeue, reconciles); err != nil {
					return err
				}
				fmt.Println("requeued")
			}
		}
	}))
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(counted{reconciles.Load(), latencies()})
}

func synced(ctx context.Context, mgr manager.Manager) error {
	// Blocks until the cache is filled.
	if _, err := mgr.GetCache().GetInformer(ctx, &Widget{}); err != nil {
		return err
	}
	fmt.Println("synced")
	return nil
}

func requeueAll(
	ctx context.Context, reader client.Reader, requeue chan event.TypedGenericEvent[*Widget], reconciles *atomic.Int64,
) error {
	times, err := strconv.Atoi(os.Getenv("REQUEUES"))
	if err != nil {
		return err
	}
	var widgets WidgetList
	if err := reader.List(ctx, &widgets); err != nil {
		return err
	}
	for range times {
		done := reconciles.Load() + int64(len(widgets.Items))
		for index := range widgets.Items {
			requeue <- event.TypedGenericEvent[*Widget]{Object: &widgets.Items[index]}
		}
		for reconciles.Load() < done {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
