package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const owner = "bench.example.com/owner"

// webhookServer serves on WEBHOOK_PORT, with the certificate in WEBHOOK_CERT_DIR.
func webhookServer() (webhook.Server, error) {
	port, err := strconv.Atoi(os.Getenv("WEBHOOK_PORT"))
	if err != nil {
		return nil, err
	}
	return webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: port, CertDir: os.Getenv("WEBHOOK_CERT_DIR"),
	}), nil
}

func addWebhooks(mgr manager.Manager) error {
	err := ctrl.NewWebhookManagedBy(mgr, &Widget{}).WithDefaulter(widgets{}).WithValidator(widgets{}).Complete()
	if err != nil {
		return err
	}
	err = ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(pods{}).WithValidator(pods{}).Complete()
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for mgr.GetWebhookServer().StartedChecker()(nil) != nil {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("serving")
		return nil
	}))
}

type widgets struct{}

func (widgets) Default(ctx context.Context, widget *Widget) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if _, found := widget.Annotations[owner]; !found {
		if widget.Annotations == nil {
			widget.Annotations = map[string]string{}
		}
		widget.Annotations[owner] = request.UserInfo.Username
	}
	if widget.Spec.Placement.PriorityClass == "" {
		widget.Spec.Placement.PriorityClass = "low"
	}
	return nil
}

func (widgets) ValidateCreate(_ context.Context, widget *Widget) (admission.Warnings, error) {
	return nil, invalid("Widget", widget.Name, widgetErrors(widget))
}

func (widgets) ValidateUpdate(_ context.Context, old, widget *Widget) (admission.Warnings, error) {
	errs := widgetErrors(widget)
	if !equality.Semantic.DeepEqual(old.Spec.Volumes, widget.Spec.Volumes) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumes"), "may not be changed"))
	}
	return nil, invalid("Widget", widget.Name, errs)
}

func (widgets) ValidateDelete(context.Context, *Widget) (admission.Warnings, error) { return nil, nil }

func widgetErrors(widget *Widget) field.ErrorList {
	var errs field.ErrorList
	if widget.Spec.Size < 0 || widget.Spec.Size > 100 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "size"), widget.Spec.Size, "must be 0 to 100"))
	}
	for index, container := range widget.Spec.Containers {
		if !strings.Contains(container.Image, ":") {
			path := field.NewPath("spec", "containers").Index(index).Child("image")
			errs = append(errs, field.Invalid(path, container.Image, "must have a tag"))
		}
	}
	return errs
}

type pods struct{}

func (pods) Default(ctx context.Context, pod *corev1.Pod) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if _, found := pod.Annotations[owner]; !found {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[owner] = request.UserInfo.Username
	}
	for index := range pod.Spec.Containers {
		if container := &pod.Spec.Containers[index]; container.ImagePullPolicy == "" {
			container.ImagePullPolicy = corev1.PullAlways
		}
	}
	return nil
}

func (pods) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, invalid("Pod", pod.Name, podErrors(pod))
}

func (pods) ValidateUpdate(_ context.Context, old, pod *corev1.Pod) (admission.Warnings, error) {
	errs := podErrors(pod)
	if old.Spec.ServiceAccountName != pod.Spec.ServiceAccountName {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "serviceAccountName"), "may not be changed"))
	}
	return nil, invalid("Pod", pod.Name, errs)
}

func (pods) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) { return nil, nil }

func podErrors(pod *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	for index, container := range pod.Spec.Containers {
		if !strings.Contains(container.Image, ":") {
			path := field.NewPath("spec", "containers").Index(index).Child("image")
			errs = append(errs, field.Invalid(path, container.Image, "must have a tag"))
		}
		if container.Resources.Limits.Memory().IsZero() {
			path := field.NewPath("spec", "containers").Index(index).Child("resources", "limits", "memory")
			errs = append(errs, field.Required(path, ""))
		}
	}
	return errs
}

func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, name, errs)
}
