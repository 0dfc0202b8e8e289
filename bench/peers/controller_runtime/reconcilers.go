package main

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const stampAnnotation = "bench.example.com/stamp"

// operator keeps one ConfigMap per Widget and reports in the status for which generation it did.
type operator struct {
	client.Client
	events events.EventRecorder
	reconciles atomic.Int64
}

func (operator *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer operator.reconciles.Add(1)
	var widget Widget
	if err := operator.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if widget.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: widget.Name, Namespace: widget.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, operator.Client, child, func() error {
		child.Data = map[string]string{
			"size":    strconv.FormatInt(widget.Spec.Size, 10),
			"payload": widget.Spec.Payload,
		}
		return controllerutil.SetControllerReference(&widget, child, operator.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result == controllerutil.OperationResultCreated {
		log.FromContext(ctx).Info("created the ConfigMap")
		operator.events.Eventf(&widget, child, corev1.EventTypeNormal, "Created", "Create", "created ConfigMap %s", child.Name)
	}
	changed := meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "ConfigMapWritten",
		Message:            "the ConfigMap is as the spec says",
		ObservedGeneration: widget.Generation,
	})
	if widget.Status.ObservedGeneration != widget.Generation {
		widget.Status.ObservedGeneration = widget.Generation
		changed = true
	}
	if !changed {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, operator.Status().Update(ctx, &widget)
}

// reader gets the Widget from the cache, has nothing to do, and notes how old the newest stamp on it is, unless the
// stamp is older than the program.
type reader struct {
	client.Client
	reconciles    atomic.Int64
	started   int64
	mutex     sync.Mutex
	seen      map[types.NamespacedName]string
	latencies []int64
}

func (reader *reader) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer reader.reconciles.Add(1)
	var widget Widget
	if err := reader.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	stamp := widget.Annotations[stampAnnotation]
	if stamp == "" {
		return ctrl.Result{}, nil
	}
	now := time.Now().UnixNano()
	written, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return ctrl.Result{}, err
	}
	reader.mutex.Lock()
	defer reader.mutex.Unlock()
	if reader.seen[request.NamespacedName] != stamp {
		reader.seen[request.NamespacedName] = stamp
		if written > reader.started {
			reader.latencies = append(reader.latencies, (now-written)/1000)
		}
	}
	return ctrl.Result{}, nil
}
