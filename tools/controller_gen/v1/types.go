// Package v1 has a kind with a field for each thing that a marker of controller-gen can express.
// tests/manifest/controller_gen holds its Python twin, and what controller-gen makes of this package.
//
// +groupName=shapes.example.com
// +versionName=v1
package v1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Gadget has every shape.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gadgetry,singular=gadget,shortName=gd;gds,categories=all;shapes,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="How many there are.",format=int32
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:storageversion
// +kubebuilder:selectablefield:JSONPath=.spec.name
// +kubebuilder:selectablefield:JSONPath=.spec.replicas
// +kubebuilder:metadata:annotations="example.com/owner=shapes",labels="example.com/tier=gold"
// +kubebuilder:externalDocs:url="https://example.com/gadgets",description="All about gadgets"
// +kubebuilder:title="The gadget"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 20",message="the name is too long"
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec"`
	Status GadgetStatus `json:"status,omitempty"`
}

// Slug is a type with validations of its own.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^[a-z]+$`
type Slug string

// Percent is one more.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=100
type Percent int32

// Color is an enumeration by its constants.
//
// +k8s:enum
type Color string

const (
	Blue Color = "blue"
	Red  Color = "red"
)

// Size is an enumeration by a marker.
//
// +kubebuilder:validation:Enum=small;large
type Size string

// +listType=set
// +kubebuilder:validation:MaxItems=7
// +kubebuilder:validation:items:MaxLength=9
type Tags []string

// Port is merged field by field.
type Port struct {
	Name string `json:"name"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int32 `json:"number"`
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol string `json:"protocol,omitempty"`
}

// Point is replaced whole.
//
// +structType=atomic
type Point struct {
	X int64 `json:"x"`
	Y int64 `json:"y"`
}

// Range has rules about several of its fields.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not exceed max",reason=FieldValueInvalid,fieldPath=.max
// +kubebuilder:validation:XValidation:rule="self.max - self.min < 1000",messageExpression="self.min < 0 ? 'too low' : 'too wide'"
type Range struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// Source is one of several.
//
// +kubebuilder:validation:ExactlyOneOf=file;url;secret
type Source struct {
	File   *string `json:"file,omitempty"`
	URL    *string `json:"url,omitempty"`
	Secret *string `json:"secret,omitempty"`
}

// Limit is none or one of several.
//
// +kubebuilder:validation:AtMostOneOf=soft;hard
type Limit struct {
	Soft *int64 `json:"soft,omitempty"`
	Hard *int64 `json:"hard,omitempty"`
}

// Contact is some of several.
//
// +kubebuilder:validation:AtLeastOneOf=mail;phone
type Contact struct {
	Mail  *string `json:"mail,omitempty"`
	Phone *string `json:"phone,omitempty"`
}

// Open has more fields than it names.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Open struct {
	Known *string `json:"known,omitempty"`
}

// Partial has at least one field.
//
// +kubebuilder:validation:MinProperties=1
type Partial struct {
	Left  *string `json:"left,omitempty"`
	Right *string `json:"right,omitempty"`
}

// GadgetSpec has the shapes.
type GadgetSpec struct {
	// Plain types, required and optional.

	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
	// +optional
	Hint *string `json:"hint"`
	// +required
	Enabled bool `json:"enabled,omitempty"`
	// +k8s:optional
	Paused *bool `json:"paused"`
	// +k8s:required
	Weight int64   `json:"weight,omitempty"`
	Count  *int    `json:"count,omitempty"`
	Small  int32   `json:"small,omitempty"`
	Large  int64   `json:"large,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Data   []byte  `json:"data,omitempty"`

	// Numbers.

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=3
	Replicas int32 `json:"replicas,omitempty"`
	// +kubebuilder:validation:Minimum=-5
	Lowest int64 `json:"lowest,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:validation:ExclusiveMaximum=true
	Fraction float64 `json:"fraction,omitempty"`
	// +kubebuilder:validation:MultipleOf=5
	Step int64 `json:"step,omitempty"`
	// +k8s:minimum=2
	// +k8s:maximum=4
	Bounded int64   `json:"bounded,omitempty"`
	Percent Percent `json:"percent,omitempty"`

	// Texts.

	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=63
	Title string `json:"title,omitempty"`
	// +kubebuilder:validation:Pattern=`^[a-z]+(-[a-z]+)*$`
	Path string `json:"path,omitempty"`
	// +kubebuilder:validation:Format=uuid
	ID string `json:"id,omitempty"`
	// +kubebuilder:validation:Format=hostname
	Host string `json:"host,omitempty"`
	Slug Slug   `json:"slug,omitempty"`

	// Enumerations.

	Color Color `json:"color,omitempty"`
	Size  Size  `json:"size,omitempty"`
	// +kubebuilder:validation:Enum=1;2;3
	Level int64 `json:"level,omitempty"`
	// +kubebuilder:validation:Enum=Always;Never
	// +kubebuilder:default=Always
	Policy string `json:"policy,omitempty"`

	// Times, quantities, and integers or texts.

	Since   *metav1.Time        `json:"since,omitempty"`
	Exactly *metav1.MicroTime   `json:"exactly,omitempty"`
	Memory  *resource.Quantity  `json:"memory,omitempty"`
	Timeout *metav1.Duration    `json:"timeout,omitempty"`
	Surge   *intstr.IntOrString `json:"surge,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+%$`
	Share *intstr.IntOrString `json:"share,omitempty"`

	// Lists.

	Plain []string `json:"plain,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Few []string `json:"few,omitempty"`
	// +k8s:maxItems=5
	Capped []int64 `json:"capped,omitempty"`
	// +listType=set
	Set []string `json:"set,omitempty"`
	// +listType=atomic
	Whole []string `json:"whole,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	Ports []Port `json:"ports,omitempty"`
	// +k8s:listType=map
	// +k8s:listMapKey=name
	Doors []Port `json:"doors,omitempty"`
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=5
	// +kubebuilder:validation:items:Pattern=`^[a-z]*$`
	Words []string `json:"words,omitempty"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=9
	Digits []int64 `json:"digits,omitempty"`
	// +kubebuilder:validation:items:Enum=red;green
	Lights []string `json:"lights,omitempty"`
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:XValidation:rule="self != 'admin'",message="this name is reserved"
	Names  []string  `json:"names,omitempty"`
	Tags   Tags      `json:"tags,omitempty"`
	Matrix [][]int64 `json:"matrix,omitempty"`
	Slugs  []Slug    `json:"slugs,omitempty"`

	// What items can be marked with.

	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:ExclusiveMinimum=true
	// +kubebuilder:validation:items:Maximum=10
	// +kubebuilder:validation:items:ExclusiveMaximum=true
	// +kubebuilder:validation:items:MultipleOf=0.5
	Parts []float64 `json:"parts,omitempty"`
	// +kubebuilder:validation:items:MinItems=2
	// +kubebuilder:validation:items:MaxItems=2
	Pairs [][]int64 `json:"pairs,omitempty"`
	// +kubebuilder:validation:items:MinProperties=1
	// +kubebuilder:validation:items:MaxProperties=2
	Bags []map[string]string `json:"bags,omitempty"`
	// +kubebuilder:validation:items:Type=string
	// +kubebuilder:validation:items:Format=uuid
	IDs []string `json:"ids,omitempty"`
	// +kubebuilder:validation:items:XIntOrString
	// +kubebuilder:validation:items:Pattern=`^[0-9]+%$`
	Shares []intstr.IntOrString `json:"shares,omitempty"`
	// +kubebuilder:validation:items:XEmbeddedResource
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Manifests []runtime.RawExtension `json:"manifests,omitempty"`

	// Maps and structures.

	Labels map[string]string `json:"labels,omitempty"`
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Bag map[string]int64 `json:"bag,omitempty"`
	// +mapType=atomic
	Frozen map[string]string `json:"frozen,omitempty"`
	// +mapType=granular
	Merged  map[string]string   `json:"merged,omitempty"`
	Groups  map[string][]string `json:"groups,omitempty"`
	Origins map[string]Port     `json:"origins,omitempty"`
	Point   *Point              `json:"point,omitempty"`
	// +structType=atomic
	Door *Port `json:"door,omitempty"`
	// +structType=granular
	Window  *Port    `json:"window,omitempty"`
	Partial *Partial `json:"partial,omitempty"`

	// Defaults.

	// +kubebuilder:default=true
	Active bool `json:"active,omitempty"`
	// +kubebuilder:default="web"
	Role string `json:"role,omitempty"`
	// +kubebuilder:default={80,443}
	Numbers []int64 `json:"numbers,omitempty"`
	// +default={"name": "web", "number": 80, "protocol": "TCP"}
	Front Port `json:"front,omitempty"`
	// +kubebuilder:default={}
	Empty map[string]string `json:"empty,omitempty"`

	// Null.

	// +nullable
	Deadline *int64 `json:"deadline,omitempty"`
	// +nullable
	// +required
	Choice *string `json:"choice"`

	// What is not typed.

	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Anything apiextensionsv1.JSON `json:"anything,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Free runtime.RawExtension `json:"free,omitempty"`
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Embedded runtime.RawExtension `json:"embedded,omitempty"`
	// +kubebuilder:validation:XEmbeddedResource
	// +kubebuilder:validation:XPreserveUnknownFields
	Template runtime.RawExtension `json:"template,omitempty"`
	Open     *Open                `json:"open,omitempty"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Typed apiextensionsv1.JSON `json:"typed,omitempty"`

	// Rules, unions and immutable fields.

	// +kubebuilder:validation:XValidation:rule="self.startsWith('x-')",message="must start with x-",reason=FieldValueForbidden
	Header string `json:"header,omitempty"`
	// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || self >= oldSelf.value()",message="must not decrease",optionalOldSelf=true
	Counter int64    `json:"counter,omitempty"`
	Range   *Range   `json:"range,omitempty"`
	Source  *Source  `json:"source,omitempty"`
	Limit   *Limit   `json:"limit,omitempty"`
	Contact *Contact `json:"contact,omitempty"`
	// +k8s:immutable
	Kept string `json:"kept"`
	// +k8s:immutable
	KeptOnce *string `json:"keptOnce,omitempty"`

	// Prose.

	// +kubebuilder:title="The caption"
	// +kubebuilder:example="Hello"
	// +kubebuilder:externalDocs:url="https://example.com/captions",description="All about captions"
	Caption string `json:"caption,omitempty"`

	// Kubernetes' own structures.

	Selector  *metav1.LabelSelector        `json:"selector,omitempty"`
	Reference *corev1.LocalObjectReference `json:"reference,omitempty"`
	Key       *corev1.SecretKeySelector    `json:"key,omitempty"`
}

// GadgetStatus is what is.
type GadgetStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
	Phase    string `json:"phase,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
