// Renders a Helm chart as `helm template` does: Go's own templates with sprig's functions, and the
// few that Helm adds. No cluster is asked: `lookup` finds nothing.
//
//	chart CHART RELEASE NAMESPACE [VALUES.yaml ...]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

// chartFacts are Helm's `.Chart`, as far as we use it.
type chartFacts struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
	Type       string `json:"type"`
}

type kubeVersion struct{ Version, GitVersion, Major, Minor string }
type apiVersions struct{}

func (apiVersions) Has(string) bool { return false }

func main() {
	if len(os.Args) < 4 {
		fail(errors.New("usage: chart CHART RELEASE NAMESPACE [VALUES.yaml ...]"))
	}
	folder, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	var facts chartFacts
	read(filepath.Join(folder, "Chart.yaml"), &facts)
	values := object{}
	for _, file := range append([]string{filepath.Join(folder, "values.yaml")}, os.Args[4:]...) {
		over := object{}
		read(file, &over)
		merge(values, over)
	}
	version := kubeVersion{Version: "v1.20.2", GitVersion: "v1.20.2", Major: "1", Minor: "20"}
	render(folder, object{
		"Chart":  facts,
		"Values": values,
		"Release": object{"Name": release, "Namespace": namespace, "Service": "Helm", "Revision": 1,
			"IsInstall": true, "IsUpgrade": false},
		"Capabilities": object{"KubeVersion": version, "APIVersions": apiVersions{}},
	})
}

func render(folder string, top object) {
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	fail(err)
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		fail(err)
		_, err = all.New(name(folder, file)).Parse(string(text))
		fail(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		text := execute(all, name(folder, file), with(top, name(folder, file)))
		if strings.TrimSpace(text) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name(folder, file), strings.TrimSpace(text))
		}
	}
}

func with(top object, name string) object {
	found := object{"Template": object{"Name": name, "BasePath": filepath.Dir(name)}}
	for key, value := range top {
		found[key] = value
	}
	return found
}

func functions(all *template.Template) template.FuncMap {
	found := sprig.TxtFuncMap()
	delete(found, "env") // as Helm does: what is rendered does not go by who renders it
	delete(found, "expandenv")
	found["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		fail(err)
		return strings.TrimSuffix(string(text), "\n")
	}
	found["fromYaml"] = func(text string) object {
		made := object{}
		fail(yaml.Unmarshal([]byte(text), &made))
		return made
	}
	found["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		fail(err)
		return string(text)
	}
	found["include"] = func(name string, data interface{}) string { return execute(all, name, data) }
	found["tpl"] = func(text string, data interface{}) (string, error) {
		inner, err := template.Must(all.Clone()).New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		err = inner.Execute(&out, data)
		return out.String(), err
	}
	found["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(why)
		}
		return value, nil
	}
	found["lookup"] = func(...string) object { return object{} }
	return found
}

func execute(all *template.Template, name string, data interface{}) string {
	var out strings.Builder
	fail(all.ExecuteTemplate(&out, name, data))
	return strings.ReplaceAll(out.String(), "<no value>", "") // which is what Helm makes of it
}

// merge has null in a later file take a key away.
func merge(into, over object) {
	for key, value := range over {
		inner, isMap := value.(object)
		known, wasMap := into[key].(object)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(known, inner)
		default:
			into[key] = value
		}
	}
}

func name(folder, file string) string {
	inside, err := filepath.Rel(filepath.Dir(filepath.Clean(folder)), file)
	fail(err)
	return inside
}

func read(file string, into interface{}) {
	text, err := os.ReadFile(file)
	fail(err)
	fail(yaml.Unmarshal(text, into))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
