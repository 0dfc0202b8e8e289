package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const patience = 20 * time.Second

// runInformers follows ConfigMaps and Websites, changes both itself, and goes on only when its informer has seen it.
func runInformers(ctx context.Context, config *rest.Config, namespace string) error {
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := followConfigMaps(ctx, typed, namespace); err != nil {
		return fmt.Errorf("configmaps: %w", err)
	}
	if err := followWebsites(ctx, untyped, namespace); err != nil {
		return fmt.Errorf("websites: %w", err)
	}
	return nil
}

func followConfigMaps(ctx context.Context, clientset kubernetes.Interface, namespace string) error {
	// Every namespace gets this one at a time of the server's choosing, so its event has no fixed position in the order.
	others := func(options *metav1.ListOptions) { options.FieldSelector = "metadata.name!=kube-root-ca.crt" }
	factory := informers.NewSharedInformerFactoryWithOptions(
		clientset, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(others),
	)
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen, err := follow(informer, func(object any) string {
		configMap := object.(*corev1.ConfigMap)
		return fmt.Sprintf("configmap %s %s", configMap.Name, configMap.Data["value"])
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(ctx.Done())
	if err := seen.synced(ctx, informer, "configmap"); err != nil {
		return err
	}

	configMaps := clientset.CoreV1().ConfigMaps(namespace)
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "made"},
		Data:       map[string]string{"value": "1"},
	}
	if configMap, err = configMaps.Create(ctx, configMap, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := seen.next(ctx, "added configmap made 1"); err != nil {
		return err
	}
	configMap.Data["value"] = "2"
	if _, err = configMaps.Update(ctx, configMap, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := seen.next(ctx, "updated configmap made 2"); err != nil {
		return err
	}
	if err := configMaps.Delete(ctx, "made", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return seen.next(ctx, "deleted configmap made 2")
}

func followWebsites(ctx context.Context, client dynamic.Interface, namespace string) error {
	resource := websiteVersion.WithResource("websites")
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource).Informer()
	seen, err := follow(informer, func(object any) string {
		website := object.(*unstructured.Unstructured)
		page, _, _ := unstructured.NestedString(website.Object, "spec", "page")
		return fmt.Sprintf("website %s %s", website.GetName(), page)
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.Start(ctx.Done())
	if err := seen.synced(ctx, informer, "website"); err != nil {
		return err
	}

	websites := client.Resource(resource).Namespace(namespace)
	website := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": websiteVersion.String(),
		"kind":       "Website",
		"metadata":   map[string]any{"name": "made"},
		"spec":       map[string]any{"page": "1"},
	}}
	if website, err = websites.Create(ctx, website, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := seen.next(ctx, "added website made 1"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(website.Object, "2", "spec", "page"); err != nil {
		return err
	}
	if _, err := websites.Update(ctx, website, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := seen.next(ctx, "updated website made 2"); err != nil {
		return err
	}
	if err := websites.Delete(ctx, "made", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return seen.next(ctx, "deleted website made 2")
}

// events are those that an informer has emitted, in their order.
type events chan string

func follow(informer cache.SharedIndexInformer, describe func(any) string) (events, error) {
	seen := make(events, 100)
	emit := func(what string, object any) {
		line := what + " " + describe(object)
		fmt.Println(line)
		seen <- line
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { emit("added", object) },
		UpdateFunc: func(_, object any) { emit("updated", object) },
		DeleteFunc: func(object any) {
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				// An unbroken watch never leads here: it would mean that the deletion itself was missed.
				emit("lost", unseen.Obj)
				return
			}
			emit("deleted", object)
		},
	})
	return seen, err
}

// synced waits for the initial list, which must hold the one object that was there before.
func (seen events) synced(ctx context.Context, informer cache.SharedIndexInformer, kind string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the informer did not sync")
	}
	if err := seen.next(ctx, "added "+kind+" before 0"); err != nil {
		return err
	}
	fmt.Println("synced " + kind)
	return nil
}

func (seen events) next(ctx context.Context, expected string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case line := <-seen:
		if line != expected {
			return fmt.Errorf("the informer emitted %q, expected %q", line, expected)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the informer did not emit %q: %w", expected, ctx.Err())
	}
}
