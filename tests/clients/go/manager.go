package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// runManager is a controller-runtime manager with one controller, which leads before it works.
func runManager(ctx context.Context, config *rest.Config, namespace string) error {
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientscheme.AddToScheme, addWebsites)
	if err := builder.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "websites",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Website{}).
		Owns(&corev1.ConfigMap{}).
		Complete(&publisher{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// publisher keeps one ConfigMap per Website and reports in the status for which generation it did.
type publisher struct {
	client.Client
}

func (publisher *publisher) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var website Website
	if err := publisher.Get(ctx, request.NamespacedName, &website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if website.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: website.Name + "-page", Namespace: website.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, publisher.Client, page, func() error {
		page.Data = map[string]string{"page": website.Spec.Page}
		return controllerutil.SetControllerReference(&website, page, publisher.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	fmt.Println("reconciled", website.Name, result)
	website.Status = WebsiteStatus{ConfigMap: page.Name, ObservedGeneration: website.Generation}
	return ctrl.Result{}, publisher.Status().Update(ctx, &website)
}
