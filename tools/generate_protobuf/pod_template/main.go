// Command pod_template prints what Go calls the types in a PodTemplateSpec, as JSON: kube-controller-manager's hashes of
// templates are hashes of how Go prints them.
//
// A struct is a list of its fields, each "<Go name> <json name> <type>"; a field without a json name is embedded. Any
// other named type is what it is made of. Run by `python -m tools.generate_protobuf`.
package main

import (
	"encoding/json"
	"log"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// These are printed as what they consist of inside, which JSON does not show.
var opaque = map[string]bool{"v1.Time": true, "resource.Quantity": true, "intstr.IntOrString": true}

var (
	described = map[string]any{}
	packages  = map[string]string{}
)

func describe(t reflect.Type) {
	if t.Name() == "" {
		switch t.Kind() {
		case reflect.Map:
			describe(t.Key())
			describe(t.Elem())
		case reflect.Pointer, reflect.Slice:
			describe(t.Elem())
		}
		return
	}
	name := t.String()
	if t.PkgPath() == "" || opaque[name] {
		return
	}
	if known, ok := packages[name]; ok {
		if known != t.PkgPath() {
			log.Fatalf("%s is a type of %s and of %s", name, known, t.PkgPath())
		}
		return
	}
	packages[name] = t.PkgPath()
	if t.Kind() != reflect.Struct {
		described[name] = underlying(t)
		return
	}
	fields := []string{}
	for index := range t.NumField() {
		field := t.Field(index)
		written, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, field.Name+" "+written+" "+field.Type.String())
		describe(field.Type)
	}
	described[name] = fields
}

func underlying(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map:
		describe(t.Key())
		describe(t.Elem())
		return "map[" + t.Key().String() + "]" + t.Elem().String()
	case reflect.Slice:
		describe(t.Elem())
		return "[]" + t.Elem().String()
	}
	return t.Kind().String()
}

func main() {
	describe(reflect.TypeFor[corev1.PodTemplateSpec]())
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(described); err != nil {
		log.Fatal(err)
	}
}
