// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// servers are the serving certificates met through an endpoint, and whose they are.
type servers struct {
	nodes []live.Node
	// shared are names and addresses that stand in every API server's certificate.
	shared  map[string]bool
	roots   *x509.CertPool
	leaves  []*x509.Certificate
	foreign string
}

func newServers(nodes []live.Node, shared []string, roots *x509.CertPool) *servers {
	s := &servers{nodes: nodes, shared: map[string]bool{}, roots: roots}
	for _, name := range shared {
		s.shared[canonical(name)] = true
	}
	return s
}

// sharedNames are what kubeadm writes into the certificate of each API server by configuration, which may be every node's
// name and address (ClusterConfiguration apiServer.certSANs).
func sharedNames(config *live.KubeadmConfig) []string {
	if config == nil {
		return nil
	}
	var c struct {
		Endpoint  string `json:"controlPlaneEndpoint"`
		APIServer struct {
			CertSANs []string `json:"certSANs"`
		} `json:"apiServer"`
	}
	// Observe has parsed it before; what it does not hold is not shared.
	if err := yaml.Unmarshal([]byte(config.ClusterConfiguration), &c); err != nil {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Endpoint)
	if err != nil {
		host = c.Endpoint
	}
	return append(c.APIServer.CertSANs, host)
}

// add takes a chain that was met.
func (s *servers) add(chain []*x509.Certificate) {
	leaf := chain[0]
	if slices.ContainsFunc(s.leaves, leaf.Equal) {
		return
	}
	if s.roots != nil {
		between := x509.NewCertPool()
		for _, c := range chain[1:] {
			between.AddCert(c)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: s.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			s.foreign = fmt.Sprintf("%s, which the cluster's CA does not stand for: %v", described(leaf), err)
			return
		}
	}
	s.leaves = append(s.leaves, leaf)
}

// met are the nodes whose certificates were shown, and a description of one that is of none of them.
func (s *servers) met() (nodes []string, foreign string) {
	nodes, foreign = []string{}, s.foreign
	var everywhere map[string]bool
	for _, leaf := range s.leaves {
		node := s.whose(leaf, s.shared)
		if node == "" {
			if everywhere == nil {
				everywhere = s.everywhere()
			}
			node = s.whose(leaf, everywhere)
		}
		switch {
		case node == "":
			foreign = described(leaf) + ", which names no one control-plane node alone"
		case !slices.Contains(nodes, node):
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes, foreign
}

// whose is the node that a certificate is of: by its name, which kubeadm writes into it, else by an address; "" when that is
// none or not one. Names in ignored tell nothing.
func (s *servers) whose(leaf *x509.Certificate, ignored map[string]bool) string {
	names := namesOf(leaf)
	only := func(has func(live.Node) []string) (node string, several bool) {
		for _, n := range s.nodes {
			if !slices.ContainsFunc(has(n), func(name string) bool { return names[canonical(name)] && !ignored[canonical(name)] }) {
				continue
			}
			if node != "" {
				return "", true
			}
			node = n.Name
		}
		return node, false
	}
	node, several := only(func(n live.Node) []string { return []string{n.Name} })
	if node != "" || several {
		return node
	}
	node, _ = only(func(n live.Node) []string { return n.Addresses })
	return node
}

// everywhere is shared, and what stands in all certificates that may be a node's, when more than one was met.
func (s *servers) everywhere() map[string]bool {
	count, of := map[string]int{}, 0
	for _, leaf := range s.leaves {
		names := namesOf(leaf)
		if !slices.ContainsFunc(s.nodes, func(n live.Node) bool {
			return names[canonical(n.Name)] || slices.ContainsFunc(n.Addresses, func(a string) bool { return names[canonical(a)] })
		}) {
			continue
		}
		of++
		for name := range names {
			count[name]++
		}
	}
	out := map[string]bool{}
	for name := range s.shared {
		out[name] = true
	}
	for name, n := range count {
		if of > 1 && n == of {
			out[name] = true
		}
	}
	return out
}

func (s *servers) metAll(expect []string) bool {
	nodes, _ := s.met()
	return len(expect) > 0 && !slices.ContainsFunc(expect, func(n string) bool { return !slices.Contains(nodes, n) })
}

func (s *servers) sight(endpoint string, answers int, down error) endpointSight {
	if answers == 0 {
		if down == nil {
			return endpointSight{} // nobody was expected
		}
		return endpointSight{served: []string{}, down: fmt.Sprintf("endpoint %s does not answer: %v", endpoint, down)}
	}
	nodes, foreign := s.met()
	out := endpointSight{served: nodes}
	if foreign != "" {
		out.foreign = fmt.Sprintf("endpoint %s showed %s", endpoint, foreign)
		if len(nodes) == 0 {
			out.served = nil
		}
	}
	return out
}

func namesOf(leaf *x509.Certificate) map[string]bool {
	out := map[string]bool{}
	for _, name := range leaf.DNSNames {
		out[canonical(name)] = true
	}
	for _, ip := range leaf.IPAddresses {
		out[canonical(ip.String())] = true
	}
	return out
}

// canonical is one spelling for a name or an address.
func canonical(name string) string {
	if ip := net.ParseIP(name); ip != nil {
		return ip.String()
	}
	return strings.ToLower(name)
}

func described(leaf *x509.Certificate) string {
	names := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		names = append(names[:len(names):len(names)], ip.String())
	}
	const some = 4
	text := strings.Join(names[:min(some, len(names))], ", ")
	if len(names) > some {
		text += ", …"
	}
	return fmt.Sprintf("a certificate for %s by %q", text, leaf.Issuer.CommonName)
}
