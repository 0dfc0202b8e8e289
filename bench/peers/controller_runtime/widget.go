package main

import (
	"maps"
	"slices"

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
	Size       int64       `json:"size"`
	Payload    string      `json:"payload,omitempty"`
	Containers []Container `json:"containers,omitempty"`
	Volumes    []Volume    `json:"volumes,omitempty"`
	Placement  Placement   `json:"placement,omitempty"`
}

type Container struct {
	Name      string     `json:"name"`
	Image     string     `json:"image"`
	Command   []string   `json:"command,omitempty"`
	Env       []Variable `json:"env,omitempty"`
	Ports     []Port     `json:"ports,omitempty"`
	Resources Resources  `json:"resources,omitempty"`
}

type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Port struct {
	Name     string `json:"name"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol,omitempty"`
}

type Resources struct {
	Requests Quantities `json:"requests,omitempty"`
	Limits   Quantities `json:"limits,omitempty"`
}

type Quantities struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

type Volume struct {
	Name         string `json:"name"`
	MountPath    string `json:"mountPath"`
	Size         string `json:"size"`
	StorageClass string `json:"storageClass,omitempty"`
}

type Placement struct {
	NodeSelector      map[string]string `json:"nodeSelector,omitempty"`
	PriorityClass     string            `json:"priorityClass,omitempty"`
	TolerationSeconds int64             `json:"tolerationSeconds,omitempty"`
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
	widget.Spec.DeepCopyInto(&out.Spec)
	if widget.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(widget.Status.Conditions))
		for index := range widget.Status.Conditions {
			widget.Status.Conditions[index].DeepCopyInto(&out.Status.Conditions[index])
		}
	}
}

func (spec *WidgetSpec) DeepCopyInto(out *WidgetSpec) {
	*out = *spec
	out.Containers = slices.Clone(spec.Containers)
	for index := range out.Containers {
		container := &out.Containers[index]
		container.Command = slices.Clone(container.Command)
		container.Env = slices.Clone(container.Env)
		container.Ports = slices.Clone(container.Ports)
	}
	out.Volumes = slices.Clone(spec.Volumes)
	out.Placement.NodeSelector = maps.Clone(spec.Placement.NodeSelector)
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
