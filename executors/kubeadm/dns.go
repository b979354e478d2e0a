// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

const (
	dnsKey   = "dns"
	kindName = "ClusterConfiguration"
)

// EditDNS returns a ClusterConfiguration with its dns section set to dns, and nothing else changed: keys it does
// not know, order and comments stay. In block style, which kubeadm writes, all bytes outside the section stay.
// An empty field of dns removes its key. It refuses what is not one ClusterConfiguration of kubeadm.k8s.io, and
// dns.disabled in versions before v1beta4, which don't have it.
//
// The section's fields mean the same in every version so far (v1beta1 to v1beta4):
// https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/#kubeadm-k8s-io-v1beta4-DNS
func EditDNS(text string, dns live.KubeadmDNS) (string, error) {
	doc, err := parse(text)
	if err != nil {
		return "", err
	}
	before, err := decode(text)
	if err != nil {
		return "", err
	}
	if err := supported(before, dns); err != nil {
		return "", err
	}
	if section(before) == dns {
		return text, nil
	}
	out, err := splice(text, doc.Content[0], dns)
	if err == nil {
		err = check(before, out, dns)
	}
	if err == nil {
		return out, nil
	}
	// Flow style, tags or an unusual layout: print the whole tree instead.
	if out, err = reprint(text, dns); err != nil {
		return "", err
	}
	if err := check(before, out, dns); err != nil {
		return "", err
	}
	return out, nil
}

// parse reads the one document of text as a tree and checks its shape, down to the dns section.
// The root mapping is its first content.
func parse(text string) (*yaml.Node, error) {
	in := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := in.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the document is empty")
		}
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if err := in.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document, only one ClusterConfiguration is understood")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: not a mapping of keys to values", root.Line)
	}
	if _, node := find(root, dnsKey); node != nil && node.Kind != yaml.MappingNode && node.Tag != "!!null" {
		return nil, fmt.Errorf("line %d: dns is not a mapping; an alias is not followed", node.Line)
	}
	return &doc, nil
}

// decode reads text as plain values, by the library that kubeadm reads it with. It refuses duplicate keys.
func decode(text string) (map[string]any, error) {
	var out map[string]any
	if err := kubeyaml.UnmarshalStrict([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	return out, nil
}

func supported(config map[string]any, dns live.KubeadmDNS) error {
	version, _ := config["apiVersion"].(string)
	if kind, _ := config["kind"].(string); kind != kindName {
		return fmt.Errorf("kind is %q, not %s", kind, kindName)
	}
	name, ok := strings.CutPrefix(version, "kubeadm.k8s.io/")
	if !ok || name == "" {
		return fmt.Errorf("apiVersion is %q, not one of kubeadm.k8s.io", version)
	}
	if dns.Disabled && slices.Contains([]string{"v1beta1", "v1beta2", "v1beta3"}, name) {
		return fmt.Errorf("dns.disabled can't be set: %s does not have it, v1beta4 does", version)
	}
	return nil
}

// section reads the dns section as kubeadm does.
func section(config map[string]any) live.KubeadmDNS {
	dns, _ := config[dnsKey].(map[string]any)
	var out live.KubeadmDNS
	out.Disabled, _ = dns["disabled"].(bool)
	out.ImageRepository, _ = dns["imageRepository"].(string)
	out.ImageTag, _ = dns["imageTag"].(string)
	return out
}

// check proves that out says what before said but for the dns section, and there dns and all other keys.
func check(before map[string]any, out string, dns live.KubeadmDNS) error {
	after, err := decode(out)
	if err != nil {
		return err
	}
	if got := section(after); got != dns {
		return fmt.Errorf("the dns section can't be set: it would be read as %+v", got)
	}
	if !reflect.DeepEqual(others(before), others(after)) {
		return errors.New("the dns section can't be set without changing something else; set it by hand")
	}
	return nil
}

// others is a configuration without the fields that EditDNS sets.
func others(config map[string]any) map[string]any {
	out := maps.Clone(config)
	dns, _ := out[dnsKey].(map[string]any)
	dns = maps.Clone(dns)
	for _, key := range []string{"disabled", "imageRepository", "imageTag"} {
		delete(dns, key)
	}
	delete(out, dnsKey)
	if len(dns) > 0 {
		out[dnsKey] = dns
	}
	return out
}

// find is the key and value nodes of a mapping, nil when there is no such key.
func find(mapping *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// edit sets the three fields in the tree of the section.
func edit(node *yaml.Node, dns live.KubeadmDNS) {
	if node.Kind != yaml.MappingNode {
		node.Kind, node.Tag, node.Value = yaml.MappingNode, "!!map", ""
	}
	for _, f := range fields(dns) {
		set(node, f)
	}
	if len(node.Content) > 0 {
		node.Style &^= yaml.FlowStyle
	}
}

// field is one field of the section; an empty value stands for no key.
type field struct{ key, value, tag string }

func fields(dns live.KubeadmDNS) []field {
	out := []field{{"disabled", "", "!!bool"}, {"imageRepository", dns.ImageRepository, "!!str"}, {"imageTag", dns.ImageTag, "!!str"}}
	if dns.Disabled {
		out[0].value = "true"
	}
	return out
}

// node is the field's scalar, in quotes where kubeadm's library would read the plain text as something else than text.
func (f field) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: f.tag, Value: f.value}
	var plain any
	if err := kubeyaml.Unmarshal([]byte(f.value), &plain); f.tag == "!!str" && (err != nil || plain != any(f.value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// set sets a field's scalar, or removes its key.
func set(mapping *yaml.Node, f field) {
	_, v := find(mapping, f.key)
	switch {
	case v != nil && f.value == "":
		i := slices.Index(mapping.Content, v)
		mapping.Content = slices.Delete(mapping.Content, i-1, i+1)
	case v != nil:
		comment := v.LineComment
		*v = *f.node()
		v.LineComment = comment
	case f.value != "":
		mapping.Content = append(mapping.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.key},
			f.node())
	}
}

// reprint edits and prints the whole tree.
func reprint(text string, dns live.KubeadmDNS) (string, error) {
	doc, err := parse(text)
	if err != nil {
		return "", err
	}
	root := doc.Content[0]
	_, node := find(root, dnsKey)
	if node == nil {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: dnsKey}, node)
	}
	edit(node, dns)
	return encode(doc)
}

// encode prints a tree as kubeadm prints its documents: two blanks, sequences not indented.
func encode(node *yaml.Node) (string, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(node); err != nil {
		return "", fmt.Errorf("print YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("print YAML: %w", err)
	}
	return out.String(), nil
}
