// Package v1beta1 has an older version, which warns whoever uses it.
//
// +groupName=shapes.example.com
// +versionName=v1beta1
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gadget was smaller.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gadgetry,singular=gadget,shortName=gd;gds,categories=all;shapes,scope=Cluster
// +kubebuilder:deprecatedversion:warning="shapes.example.com/v1beta1 is old: use v1"
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GadgetSpec `json:"spec"`
}

// GadgetSpec was small.
type GadgetSpec struct {
	Name string `json:"name"`
}
