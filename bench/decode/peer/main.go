// The Go side of the decoding benchmark: what client-go's informers do with the JSON of an object.
//
//	peer typed|unstructured FILE N
//
// prints the microseconds of CPU that N decodings took. All N objects are kept, as a cache would.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"
)

type part struct {
	Name     string `json:"name"`
	Weight   int    `json:"weight"`
	Material string `json:"material"`
	Tested   bool   `json:"tested"`
}

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size    int               `json:"size"`
		Color   string            `json:"color"`
		Parts   []part            `json:"parts"`
		Options map[string]string `json:"options"`
	} `json:"spec"`
	Status struct {
		Ready      int                `json:"ready"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: peer typed|unstructured FILE N")
	}
	raw, err := os.ReadFile(os.Args[2])
	check(err)
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	decode := func() any {
		if os.Args[1] == "unstructured" {
			object := &unstructured.Unstructured{}
			check(object.UnmarshalJSON(raw))
			return object
		}
		var object any = &widget{}
		if filepath.Base(os.Args[2]) == "pod.json" {
			object = &corev1.Pod{}
		}
		check(json.UnmarshalCaseSensitivePreserveInts(raw, object))
		return object
	}
	for range 100 {
		decode()
	}
	before := cpu()
	kept := make([]any, count)
	for index := range kept {
		kept[index] = decode()
	}
	fmt.Println(cpu() - before)
	if len(kept) != count {
		log.Fatal("an object was lost")
	}
}

func cpu() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return (usage.Utime.Sec+usage.Stime.Sec)*1_000_000 + usage.Utime.Usec + usage.Stime.Usec
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
