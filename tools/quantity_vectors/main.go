// Command quantity_vectors prints what k8s.io/apimachinery makes of a few hundred quantities, as JSON.
// tests/api/test_quantity.py holds kubewright.api.Quantity to it. From this directory:
//
//	go run . > ../../tests/api/quantity_vectors.json
//
// Left out are answers in which apimachinery contradicts its own documentation: the printed form of a value too large for
// the last suffix (1000E prints as "1"), Value and MilliValue of what does not fit int64 (they wrap or answer 0), and of
// negative fractions that it keeps as inf.Dec (rounded up past the next integer instead of away from zero).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"log"
	"math/big"
	"os"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

type parsed struct {
	Text     string `json:"text"`
	Error    string `json:"error,omitempty"`
	String   string `json:"string,omitempty"`
	Unscaled string `json:"unscaled,omitempty"`
	Scale    int    `json:"scale,omitempty"`
	Negated  string `json:"negated,omitempty"`
	Value    *int64 `json:"value,omitempty"`
	Milli    *int64 `json:"milli,omitempty"`
}

type pair struct {
	Left       string `json:"left"`
	Right      string `json:"right"`
	Compare    int    `json:"compare"`
	Sum        string `json:"sum"`
	Difference string `json:"difference"`
}

type product struct {
	Text   string `json:"text"`
	Factor int64  `json:"factor"`
	String string `json:"string"`
}

type decoded struct {
	JSON   json.RawMessage `json:"json"`
	String string          `json:"string"`
}

var numbers = []string{
	"0", "1", "-1", "+1", "001", "1.", ".5", "-0.1", "1.5", "1.500", "1.234", "-2.0005", "+4", "8", "100", "1000", "+1000", "1023",
	"1024", "-3072", "+12345678901", "+123456789012", "0.000000001", "0.1000000000001", "0000000000.1234567890",
	"99999999999999", "999999999999999999", "1000000000000000000", "9223372036854775807", "-9223372036854775809",
}

var suffixes = []string{
	"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+4", "e-12", "e0", "E06",
}

// No digits at all, and what is not a quantity.
var oddities = []string{
	"", "+", "-", ".", "-.", "m", "Ki", "Ti", "Pi", "Ei", ".Ei", "e3", "e-9", "e-10", "E", "e", "1e", "1E+", "1e3.5", "1ee3", "1Ee3",
	"1K", "1ki", "1KI", "1i", "1mi", "1Mi1", "1m1", "1kk", "1gb", "1GB", "1.2.3", "1..", "--1", "+-1", "1-", "1+1", "1-Ki", "1,5",
	"1_000", "0x10", "1 ", " 1", "1\n", "1 Ki", "NaN", "Inf", "infinity", "٣", "1μ", "1µ", "1e9223372036854775808",
	"1e300", "1234567890123456789e300", "1e-300", "-1e-300", "0e-300",
}

var operands = []string{
	"0", "0Ki", "0e1", "1", "100m", "1.234", "1n", "1e3", "1Ki", "-1.5Gi", "0.1Ki", "7Ei", "9223372036854775807",
	"12345678901234567890", "0.00048828125Ki",
}

var factors = []int64{0, 1, -1, 3, 1000, 4096, 9223372036854775807}

var documents = []string{
	`"1500m"`, `" 1Gi "`, `0`, `1`, `-7`, `1000`, `1.5`, `1e3`, `1E-3`, `0.1`, `1e22`, `123456789.125`, `1e-7`,
}

func main() {
	document := map[string]any{}
	var parses []any
	for _, number := range numbers {
		for _, suffix := range suffixes {
			parses = append(parses, parse(number+suffix)...)
		}
	}
	for _, text := range oddities {
		parses = append(parses, parse(text)...)
	}
	document["parse"] = parses

	var pairs, products, decodes []any
	for _, left := range operands {
		for _, right := range operands {
			pairs = append(pairs, combine(left, right))
		}
		for _, factor := range factors {
			quantity := resource.MustParse(left)
			quantity.Mul(factor)
			if faithful(quantity) {
				products = append(products, product{left, factor, quantity.String()})
			}
		}
	}
	for _, text := range documents {
		var quantity resource.Quantity
		if err := json.Unmarshal([]byte(text), &quantity); err != nil {
			log.Fatal(err)
		}
		decodes = append(decodes, decoded{json.RawMessage(text), quantity.String()})
	}
	document["pairs"], document["products"], document["json"] = pairs, products, decodes
	write(document)
}

func parse(text string) []any {
	quantity, err := resource.ParseQuantity(text)
	switch {
	case errors.Is(err, resource.ErrFormatWrong):
		return []any{parsed{Text: text, Error: "format"}}
	case errors.Is(err, resource.ErrSuffix):
		return []any{parsed{Text: text, Error: "suffix"}}
	case errors.Is(err, resource.ErrNumeric):
		return []any{parsed{Text: text, Error: "number"}}
	case !faithful(quantity):
		return nil
	}
	result := parsed{Text: text, String: quantity.String()}
	integer, milli := quantity.DeepCopy(), quantity.DeepCopy()
	exact := quantity.DeepCopy()
	result.Unscaled, result.Scale = exact.AsDec().UnscaledBig().String(), int(exact.AsDec().Scale())
	result.Value = documented(integer.Value(), exact.AsDec(), 0)
	result.Milli = documented(milli.MilliValue(), exact.AsDec(), 3)
	quantity.Neg()
	result.Negated = quantity.String()
	return []any{result}
}

func combine(leftText, rightText string) pair {
	left, right := resource.MustParse(leftText), resource.MustParse(rightText)
	sum, difference := left.DeepCopy(), left.DeepCopy()
	sum.Add(right.DeepCopy())
	difference.Sub(right.DeepCopy())
	return pair{leftText, rightText, left.Cmp(right), sum.String(), difference.String()}
}

// faithful reports whether the printed form still has the value.
func faithful(quantity resource.Quantity) bool {
	printed := resource.MustParse(quantity.String())
	return printed.Cmp(quantity) == 0
}

// documented returns answer when it is what the documentation promises: rounded away from zero, within int64.
func documented(answer int64, exact *inf.Dec, scale inf.Scale) *int64 {
	rounded := new(inf.Dec).Round(exact, scale, inf.RoundUp).UnscaledBig()
	if rounded.Cmp(big.NewInt(answer)) != 0 {
		return nil
	}
	return &answer
}

// write prints one case per line, so that a changed case is one changed line.
func write(document map[string]any) {
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	separator := "{"
	for _, section := range []string{"parse", "pairs", "products", "json"} {
		output.WriteString(separator + "\"" + section + "\":[")
		separator = ",\n"
		for index, entry := range document[section].([]any) {
			if index > 0 {
				output.WriteString(",")
			}
			line, err := json.Marshal(entry)
			if err != nil {
				log.Fatal(err)
			}
			output.WriteString("\n")
			output.Write(line)
		}
		output.WriteString("]")
	}
	output.WriteString("}\n")
}
