// Command go_types writes what kube-apiserver's own types say and OpenAPI does not: for every field whether it is a
// pointer, what an absent one is encoded as, and what Go calls its type in error messages.
//
// It needs the Go modules of the pinned Kubernetes version (`make control-plane` fetches them), and the kinds to start
// from. `python -m tools.go_types` calls it with all that are served and writes the result where the server reads it.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

// A field is [json name, Go type, options]; a named type is "<package>#<Name>". The name of a field that comes from an
// embedded struct begins with that struct's name, as error messages do.
type field [3]string

type pkg struct {
	structs map[string]*ast.StructType
	named   map[string]string // named types that are no structs: their underlying type
	imports map[string]map[string]string
	files   map[string]string // struct -> file
}

var (
	packages = map[string]*pkg{}
	custom   = map[string]bool{
		"Time": true, "MicroTime": true, "Duration": true, "Quantity": true, "IntOrString": true, "RawExtension": true, "FieldsV1": true,
		"JSON": true, "JSONSchemaPropsOrArray": true, "JSONSchemaPropsOrBool": true, "JSONSchemaPropsOrStringArray": true,
		"Unknown": true, "Object": true,
	}
)

func load(root, path string) *pkg {
	if found, ok := packages[path]; ok {
		return found
	}
	p := &pkg{map[string]*ast.StructType{}, map[string]string{}, map[string]map[string]string{}, map[string]string{}}
	packages[path] = p
	files, _ := filepath.Glob(filepath.Join(root, "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "zz_generated") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			panic(err)
		}
		imports := map[string]string{}
		for _, one := range parsed.Imports {
			imported := strings.Trim(one.Path.Value, `"`)
			name := filepath.Base(imported)
			if one.Name != nil {
				name = one.Name.Name
			}
			imports[name] = imported
		}
		p.imports[file] = imports
		for _, declaration := range parsed.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					p.files[named.Name.Name] = file
					if structure, ok := named.Type.(*ast.StructType); ok {
						p.structs[named.Name.Name] = structure
					} else {
						p.named[named.Name.Name] = ""
					}
				}
			}
		}
		for _, declaration := range parsed.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range general.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						if _, isStruct := named.Type.(*ast.StructType); !isStruct {
							p.named[named.Name.Name] = render(named.Type, path, file)
						}
					}
				}
			}
		}
	}
	return p
}

var roots = map[string]string{}

func render(expression ast.Expr, path, file string) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return "*" + render(e.X, path, file)
	case *ast.ArrayType:
		return "[]" + render(e.Elt, path, file)
	case *ast.MapType:
		return "map[" + render(e.Key, path, file) + "]" + render(e.Value, path, file)
	case *ast.Ident:
		switch e.Name {
		case "string", "bool", "int", "int32", "int64", "float64", "byte", "uint16", "uint32", "uint64", "any":
			return e.Name
		}
		return path + "#" + e.Name
	case *ast.SelectorExpr:
		alias := e.X.(*ast.Ident).Name
		return packages[path].imports[file][alias] + "#" + e.Sel.Name
	case *ast.InterfaceType:
		return "any"
	}
	return "any"
}

func fieldsOf(path, name string) []field {
	p := load(roots[path], path)
	structure := p.structs[name]
	file := p.files[name]
	out := []field{}
	for _, one := range structure.Fields.List {
		if one.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(one.Tag.Value, "`")).Get("json")
		parts := strings.Split(tag, ",")
		rendered := render(one.Type, path, file)
		if parts[0] == "-" {
			continue
		}
		if parts[0] == "" {
			target := strings.TrimPrefix(rendered, "*")
			package_, embedded, _ := strings.Cut(target, "#")
			if _, known := roots[package_]; !known {
				panic("embedded " + rendered)
			}
			for _, one := range fieldsOf(package_, embedded) {
				one[0] = embedded + "." + one[0]
				out = append(out, one)
			}
			continue
		}
		options := ""
		for _, option := range parts[1:] {
			switch option {
			case "omitempty":
				options += "e"
			case "omitzero":
				options += "z"
			}
		}
		out = append(out, field{parts[0], rendered, options})
	}
	return out
}

func main() {
	mods, version := os.Args[1], os.Args[2]
	api := filepath.Join(mods, "api@"+version)
	directories, _ := filepath.Glob(filepath.Join(api, "*", "v*"))
	for _, directory := range directories {
		relative, _ := filepath.Rel(api, directory)
		roots["k8s.io/api/"+relative] = directory
	}
	roots["k8s.io/apimachinery/pkg/apis/meta/v1"] = filepath.Join(mods, "apimachinery@"+version, "pkg/apis/meta/v1")
	roots["k8s.io/apimachinery/pkg/types"] = filepath.Join(mods, "apimachinery@"+version, "pkg/types")
	roots["k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"] = filepath.Join(mods, "apiextensions-apiserver@"+version, "pkg/apis/apiextensions/v1")
	roots["k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"] = filepath.Join(mods, "kube-aggregator@"+version, "pkg/apis/apiregistration/v1")
	for path, root := range roots {
		load(root, path)
	}
	structs := map[string][]field{}
	named := map[string]string{}
	var visit func(string)
	visit = func(rendered string) {
		rendered = strings.TrimLeft(rendered, "*[]")
		if rest, ok := strings.CutPrefix(rendered, "map["); ok {
			key, value, _ := strings.Cut(rest, "]")
			visit(key)
			visit(value)
			return
		}
		path, name, ok := strings.Cut(rendered, "#")
		if !ok || custom[name] {
			return
		}
		if _, known := roots[path]; !known {
			panic("unknown package of " + rendered)
		}
		p := packages[path]
		if underlying, ok := p.named[name]; ok {
			if _, seen := named[rendered]; !seen {
				named[rendered] = underlying
				visit(underlying)
			}
			return
		}
		if _, seen := structs[rendered]; seen {
			return
		}
		structs[rendered] = fieldsOf(path, name)
		for _, one := range structs[rendered] {
			visit(one[1])
		}
	}
	for _, kind := range os.Args[3:] {
		visit(kind)
	}
	short := func(text string) string {
		text = strings.ReplaceAll(text, "k8s.io/apimachinery/pkg/apis/", "")
		text = strings.ReplaceAll(text, "k8s.io/apiextensions-apiserver/pkg/apis/", "")
		text = strings.ReplaceAll(text, "k8s.io/kube-aggregator/pkg/apis/", "")
		text = strings.ReplaceAll(text, "k8s.io/apimachinery/pkg/", "")
		return strings.ReplaceAll(text, "k8s.io/api/", "")
	}
	lines := []string{}
	for name, fields := range structs {
		shortened := make([]string, len(fields))
		for i, one := range fields {
			shortened[i] = strings.TrimSuffix(one[0]+" "+short(one[1])+" "+one[2], " ")
		}
		encoded, _ := json.Marshal(shortened)
		lines = append(lines, fmt.Sprintf("%q:%s", short(name), encoded))
	}
	for name, underlying := range named {
		lines = append(lines, fmt.Sprintf("%q:%q", short(name), short(underlying)))
	}
	sort.Strings(lines)
	fmt.Println("{" + strings.Join(lines, ",\n") + "}")
}
