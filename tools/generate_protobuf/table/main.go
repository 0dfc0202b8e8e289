// Command table prints how every kind that kube-apiserver reads or writes as protobuf is laid out, as JSON:
//
//	kinds     apiVersion -> kind -> message; those of meta/v1 are under v1 only, though every version has them
//	messages  message -> its fields in the order of the Go struct
//
// A field is "<number> <json name>[:<Go name>] <type>": the Go name is there when it is not the json name with a capital
// first letter; a field without a json name is inlined. A type is a message or a scalar, after "*" for a pointer, "[]" for
// a list, "{}" for a map; a "?" behind it says that JSON leaves the field out when it has Go's zero value.
// Run by `python -m tools.generate_protobuf`.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"kubewright/tools/generate_protobuf/kinds"
)

// What these look like in JSON is not what their structs say.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                          "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                     "MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                      "FieldsV1",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                      "Quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                    "IntOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                       "RawExtension",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":      "JSON",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSON": "JSON",
}

var scalars = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "bool", reflect.Int32: "int32", reflect.Int64: "int64", reflect.Float64: "double",
}

var unmarshals = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()

var messages = map[string][]string{}

func message(t reflect.Type) string {
	name := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	for _, noise := range []string{"api/", "apimachinery/pkg/", "apiextensions-apiserver/pkg/", "kube-aggregator/pkg/", "apis/"} {
		name = strings.TrimPrefix(name, noise)
	}
	name += "." + t.Name()
	if _, known := messages[name]; known {
		return name
	}
	messages[name] = nil
	if t.Kind() == reflect.Slice {
		messages[name] = []string{"1 items []" + typeOf(t.Elem())}
		return name
	}
	fields := []string{}
	for index := range t.NumField() {
		field := t.Field(index)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		written := strings.Split(field.Tag.Get("json"), ",")
		name, options := written[0], written[1:]
		if name == "" && !field.Anonymous {
			name = field.Name
		}
		label := name
		if capitalised(name) != field.Name {
			label += ":" + field.Name
		}
		fields = append(fields, tag[1]+" "+label+" "+typeOf(field.Type)+omission(field.Type, options))
	}
	messages[name] = fields
	return name
}

func capitalised(name string) string {
	if name == "" {
		return ""
	}
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}

// Of structs, omitempty leaves out none; omitzero does.
func omission(t reflect.Type, options []string) string {
	for _, option := range options {
		if option == "omitzero" || option == "omitempty" && t.Kind() != reflect.Struct {
			return "?"
		}
	}
	return ""
}

func typeOf(t reflect.Type) string {
	if name, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		return name
	}
	if scalar, ok := scalars[t.Kind()]; ok {
		return scalar
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeOf(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			log.Fatalf("%s: keys of maps must be strings", t)
		}
		return "{}" + typeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if reflect.PointerTo(t).Implements(unmarshals) {
			return message(t)
		}
		return "[]" + typeOf(t.Elem())
	case reflect.Struct:
		if !reflect.PointerTo(t).Implements(unmarshals) {
			log.Fatalf("%s is no protobuf message", t)
		}
		return message(t)
	}
	log.Fatalf("%s: do not know how this is encoded", t)
	return ""
}

func main() {
	found := map[string]map[string]string{}
	scheme := kinds.Scheme()
	// What other kinds are shown as, and clients never send.
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	utilruntime.Must(metav1beta1.AddMetaToScheme(scheme))
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || !reflect.PointerTo(t).Implements(unmarshals) {
			continue
		}
		version := gvk.GroupVersion().String()
		if found[version] == nil {
			found[version] = map[string]string{}
		}
		if name := message(t); version == "v1" || gvk.Group == metav1.GroupName || !strings.HasPrefix(name, "meta/v1.") {
			found[version][gvk.Kind] = name
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"kinds": found, "messages": messages}); err != nil {
		log.Fatal(err)
	}
}
