// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const (
	templateFields    = "Machine, KubernetesVersion, KubeadmPath, JoinConfiguration, JoinScript, Files (each with Path, Mode, Content)"
	templateFunctions = "json, base64, indent"
)

// templateData is what spec.controlPlane.join.userDataTemplate can use:
//
//	Machine            name of the machine
//	KubernetesVersion  v1.37.2
//	KubeadmPath        kubeadm on the machine
//	JoinConfiguration  the text for `kubeadm join --config`; a secret
//	JoinScript         the built-in script: sh SCRIPT KUBEADM, with the configuration in /run/theseus/join.yaml
//	Files              spec.controlPlane.join.files: Path, Mode, Content; Content is a secret
//
// and beside text/template's own functions json (a quoted text, valid in YAML), base64, and indent N.
type templateData struct {
	Machine, KubernetesVersion, KubeadmPath, JoinScript string
	Files                                               []templateFile

	config string
	// used tells that the template asked for the configuration.
	used bool
}

type templateFile struct{ Path, Mode, Content string }

// JoinConfiguration is a method, so that its use is seen.
func (d *templateData) JoinConfiguration() string {
	d.used = true
	return d.config
}

// forbidden would make a second cluster (vmware-archive/cluster-api-upgrade-tool#123), or destroy what a person or
// etcd still needs.
var forbidden = regexp.MustCompile(`kubeadm\s+(init|reset)\b`)

// fromTemplate is the user's own user data. Errors of text/template name places in the template, never values.
func (j Join) fromTemplate(config string) (string, error) {
	data := &templateData{
		Machine: j.Machine, KubernetesVersion: j.Kubernetes.String(), KubeadmPath: j.Spec.KubeadmPath, JoinScript: joinScript, config: config,
	}
	for _, f := range j.files() {
		data.Files = append(data.Files, templateFile{f.Path, f.Mode, string(f.Content)})
	}
	t, err := template.New("userDataTemplate").Funcs(template.FuncMap{"json": quoteJSON, "base64": encode64, "indent": indent}).Parse(j.Spec.UserDataTemplate)
	if err != nil {
		return "", fmt.Errorf("%w; functions: %s", err, templateFunctions)
	}
	out := limited{left: j.limit()}
	err = t.Execute(&out, data)
	switch {
	case errors.Is(err, errLimit):
		return "", j.tooLong(fmt.Sprintf("more than %d", j.limit()))
	case err != nil:
		return "", fmt.Errorf("%w; fields: %s", err, templateFields)
	}
	if err := checkTemplated(out.text.String(), data.used); err != nil {
		return "", err
	}
	return out.text.String(), nil
}

func checkTemplated(text string, joins bool) error {
	if !joins {
		return errors.New("userDataTemplate does not use {{.JoinConfiguration}}, so the machine could never join")
	}
	if found := forbidden.FindString(text); found != "" {
		return fmt.Errorf("userDataTemplate holds %q; a machine may only join", found)
	}
	if strings.HasPrefix(text, "#cloud-config") {
		var doc yaml.Node // into a node, whose errors tell lines but no values
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return fmt.Errorf("userDataTemplate gives a #cloud-config that is not YAML: %w; write texts of several lines as {{json .JoinConfiguration}}", err)
		}
	}
	return nil
}

func encode64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func quoteJSON(text string) (string, error) {
	out, err := json.Marshal(text)
	return string(out), err
}

// indent puts blanks before each line but the first, whose place the template gives.
func indent(blanks int, text string) (string, error) {
	if blanks < 0 || blanks > 100 {
		return "", fmt.Errorf("indent %d: allowed are 0 to 100", blanks)
	}
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+strings.Repeat(" ", blanks)), nil
}

// limited is a buffer that refuses to grow for ever, as a template with a loop could make it.
type limited struct {
	text bytes.Buffer
	left int
}

var errLimit = errors.New("the template's result is too long")

// Write keeps text while there is room.
func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, errLimit
	}
	return l.text.Write(text)
}
