package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var websiteVersion = schema.GroupVersion{Group: "clients.example.com", Version: "v1"}

// Website is the custom resource: a page of text that the manager writes to a ConfigMap.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec,omitempty"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

type WebsiteSpec struct {
	Page string `json:"page"`
}

type WebsiteStatus struct {
	ConfigMap          string `json:"configMap,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

func (website *Website) DeepCopyObject() runtime.Object {
	copied := *website
	website.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (list *WebsiteList) DeepCopyObject() runtime.Object {
	copied := *list
	list.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Website, len(list.Items))
	for index := range list.Items {
		copied.Items[index] = *list.Items[index].DeepCopyObject().(*Website)
	}
	return &copied
}

func addWebsites(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(websiteVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, websiteVersion)
	return nil
}
