// Package v1alpha1 has a version that is not served any more.
//
// +groupName=shapes.example.com
// +versionName=v1alpha1
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gadget was smallest.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gadgetry,singular=gadget,shortName=gd;gds,categories=all;shapes,scope=Cluster
// +kubebuilder:unservedversion
// +kubebuilder:deprecatedversion
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GadgetSpec `json:"spec"`
}

// GadgetSpec was small.
type GadgetSpec struct {
	// +kubebuilder:validation:Required
	Name string `json:"name,omitempty"`
	// +kubebuilder:validation:Optional
	Comment string `json:"comment"`
}
