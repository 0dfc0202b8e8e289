package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var widgetVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// Widget is the custom resource of the benchmark.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size    int64  `json:"size"`
	Payload string `json:"payload,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (widget *Widget) DeepCopyInto(out *Widget) {
	*out = *widget
	widget.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if widget.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(widget.Status.Conditions))
		for index := range widget.Status.Conditions {
			widget.Status.Conditions[index].DeepCopyInto(&out.Status.Conditions[index])
		}
	}
}

func (widget *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	widget.DeepCopyInto(out)
	return out
}

func (list *WidgetList) DeepCopyObject() runtime.Object {
	out := new(WidgetList)
	*out = *list
	list.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(list.Items))
	for index := range list.Items {
		list.Items[index].DeepCopyInto(&out.Items[index])
	}
	return out
}

func addWidgets(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(widgetVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	return nil
}
