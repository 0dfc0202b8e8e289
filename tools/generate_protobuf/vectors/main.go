// Command vectors prints what kube-apiserver makes of protobuf bodies: one JSON document per line with the body in base64
// and the decoded object as Go writes it, or the error. tests/controlplane/embedded/protobuf/test_vectors.py holds the
// embedded server to it. Objects are random, but the same for the same seed: sparse, with zeros behind pointers and
// without; some bodies are damaged.
//
//	go run ./vectors [-seed 2] [-rounds 1] [-damaged 1] [-all] > vectors.jsonl
//
// Without -all, lists and versions that are not stable are left out.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"log"
	"math/rand"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"kubewright/tools/generate_protobuf/kinds"
)

var (
	texts      = []string{"", "", "a", "name", "Ünï ☃", "with \"quotes\"\n"}
	quantities = []string{"0", "1", "1500m", "2Gi", "100k", "3e6"}
	documents  = []string{`{}`, `{"a":1}`, `"text"`, `[1,2.5,null]`, `true`}
)

func pick(options []string, c randfill.Continue) string { return options[c.Intn(len(options))] }

// JSON says nothing of types, lists and schemas at once: one alternative is filled in.
func functions() []any {
	return []any{
		func(text *string, c randfill.Continue) { *text = pick(texts, c) },
		func(number *int32, c randfill.Continue) { *number = []int32{0, 1, 300, -1, 1 << 30}[c.Intn(5)] },
		func(number *int64, c randfill.Continue) { *number = []int64{0, 1, 300, -1, 1 << 60}[c.Intn(5)] },
		func(number *float64, c randfill.Continue) { *number = []float64{0, 1, -2.5, 1e21, 1e-9}[c.Intn(5)] },
		func(at *metav1.Time, c randfill.Continue) {
			*at = []metav1.Time{{}, metav1.Unix(0, 0), metav1.Unix(1700000000, 0), metav1.Unix(-5, 0)}[c.Intn(4)]
		},
		func(at *metav1.MicroTime, c randfill.Continue) {
			*at = []metav1.MicroTime{{}, {Time: time.Unix(1700000000, 123456000)}, {Time: time.Unix(-5, 1000)}}[c.Intn(3)]
		},
		func(amount *resource.Quantity, c randfill.Continue) {
			*amount = resource.MustParse(pick(quantities, c))
		},
		func(either *intstr.IntOrString, c randfill.Continue) {
			*either = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(80), intstr.FromString("25%")}[c.Intn(3)]
		},
		func(raw *runtime.RawExtension, c randfill.Continue) { raw.Raw = []byte(pick(documents, c)) },
		func(fields *metav1.FieldsV1, c randfill.Continue) {
			fields.SetRawBytes([]byte(`{"f:metadata":{".":{}}}`))
		},
		func(raw *apiextensionsv1.JSON, c randfill.Continue) { raw.Raw = []byte(pick(documents, c)) },
		func(raw *apiextensionsv1beta1.JSON, c randfill.Continue) { raw.Raw = []byte(pick(documents, c)) },
	}
}

func wanted(gvk schema.GroupVersionKind, all bool) bool {
	if gvk.Version == runtime.APIVersionInternal || gvk.Kind == "WatchEvent" {
		return false
	}
	of := func(text string) bool { return strings.Contains(gvk.Version, text) }
	options := strings.HasSuffix(gvk.Kind, "Options") && gvk != schema.GroupVersion{Version: "v1"}.WithKind("DeleteOptions")
	return all || !options && !strings.HasSuffix(gvk.Kind, "List") && !of("alpha") && !of("beta")
}

func main() {
	// With 2 no damage hits what the embedded server knowingly does differently (see MapEntry in its message.py).
	seed := flag.Int64("seed", 2, "of the random numbers")
	rounds := flag.Int("rounds", 1, "objects per kind")
	damaged := flag.Int("damaged", 1, "damaged copies per object")
	all := flag.Bool("all", false, "every version and the lists, too")
	flag.Parse()

	scheme := kinds.Scheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	chosen := []schema.GroupVersionKind{}
	for gvk := range scheme.AllKnownTypes() {
		if wanted(gvk, *all) {
			chosen = append(chosen, gvk)
		}
	}
	slices.SortFunc(chosen, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	random := rand.New(rand.NewSource(*seed))
	filler := randfill.New().RandSource(rand.NewSource(*seed)).NilChance(0.6).NumElements(1, 2).Funcs(functions()...).MaxDepth(12)
	output := json.NewEncoder(os.Stdout)
	for _, gvk := range chosen {
		for range *rounds {
			object, err := scheme.New(gvk)
			fail(err)
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			body := bytes.Buffer{}
			if err := serializer.Encode(object, &body); err != nil {
				continue // a kind without protobuf
			}
			vectors := []vector{decoded(body.Bytes(), serializer)}
			for range *damaged {
				vectors = append(vectors, decoded(damage(body.Bytes(), gvk.Kind, random), serializer))
			}
			for _, one := range vectors {
				// Damaged, it may be what the server reads and cannot write, or not as proper JSON.
				if written, err := json.Marshal(one); err == nil && utf8.Valid(written) {
					fail(output.Encode(one))
				}
			}
		}
	}
}

// A vector is a body with what comes of it: an object or an error.
type vector struct {
	Body   []byte         `json:"body"`
	Object runtime.Object `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
}

func decoded(body []byte, decoder runtime.Decoder) vector {
	object, _, err := decoder.Decode(body, nil, nil)
	if err != nil {
		return vector{Body: body, Error: err.Error()}
	}
	return vector{Body: body, Object: object}
}

// damage cuts a body off, or changes a few of its bytes, but leaves alone what says its kind.
func damage(body []byte, kind string, random *rand.Rand) []byte {
	body = bytes.Clone(body)
	start := bytes.Index(body, []byte(kind)) + len(kind)
	within := func() int { return start + random.Intn(len(body)-start) }
	if random.Intn(4) == 0 {
		return body[:within()]
	}
	for range 1 + random.Intn(3) {
		body[within()] = byte(random.Intn(256))
	}
	return body
}

func fail(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
