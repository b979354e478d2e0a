// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/theseus-gitops/theseus/executors/etcd"
)

// patience is for a machine that is busy with other things; a quiet one needs a second or two.
const patience = 90 * time.Second

// cluster is real etcd, each member a process on loopback.
type cluster struct {
	t     *testing.T
	ca    *pki
	dir   string
	nodes map[string]*node
}

type node struct {
	name         string
	client, peer string // host:port
	process      *exec.Cmd
	log          string
}

func (n *node) peerURL() string { return "https://" + n.peer }

// start begins a cluster of as many members as names.
func start(t *testing.T, ca *pki, names []string, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, ca: ca, dir: t.TempDir(), nodes: map[string]*node{}}
	var initial []string
	for _, name := range names {
		n := c.add(name)
		initial = append(initial, name+"="+n.peerURL())
	}
	for _, name := range names {
		c.run(name, append(flags, "--initial-cluster-state=new", "--initial-cluster="+strings.Join(initial, ","))...)
	}
	c.await("all members are healthy", func(v etcd.View) bool {
		n := v.Count()
		return v.Confirmed && v.AlarmsSeen && n.Voters == len(names) && n.Healthy == n.Voters && len(v.Differences) == 0
	})
	return c
}

func (c *cluster) add(name string) *node {
	c.t.Helper()
	n := &node{name: name, client: freeAddress(c.t), peer: freeAddress(c.t)}
	c.nodes[name] = n
	return n
}

// run starts the process of a node.
func (c *cluster) run(name string, flags ...string) {
	c.t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		c.t.Skip("KUBEBUILDER_ASSETS is not set: it names the folder that has etcd; `make test` sets it")
	}
	n := c.nodes[name]
	certificate, key := c.ca.server(c.t, name)
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": c.ca.certificatePEM()}
	at := func(file string) string { return filepath.Join(c.dir, name+"-"+file) }
	for file, data := range files {
		if err := os.WriteFile(at(file), data, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	n.log = at("log")
	args := []string{
		"--name=" + name, "--data-dir=" + at("data"), "--unsafe-no-fsync", "--log-level=warn", "--log-outputs=" + n.log,
		"--listen-client-urls=https://" + n.client, "--advertise-client-urls=https://" + n.client,
		"--listen-peer-urls=" + n.peerURL(), "--initial-advertise-peer-urls=" + n.peerURL(),
		"--cert-file=" + at("tls.crt"), "--key-file=" + at("tls.key"), "--trusted-ca-file=" + at("ca.crt"), "--client-cert-auth",
		"--peer-cert-file=" + at("tls.crt"), "--peer-key-file=" + at("tls.key"), "--peer-trusted-ca-file=" + at("ca.crt"), "--peer-client-cert-auth",
	}
	n.process = exec.Command(filepath.Join(assets, "etcd"), append(args, flags...)...)
	if err := n.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	process := n.process
	c.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if c.t.Failed() {
			log, _ := os.ReadFile(n.log)
			c.t.Logf("etcd on %s, end of its log:\n%s", name, log[max(0, len(log)-2000):])
		}
	})
}

// join starts a node that has been added as a learner.
func (c *cluster) join(name string, members ...string) {
	c.t.Helper()
	var initial []string
	for _, m := range append(members, name) {
		initial = append(initial, m+"="+c.nodes[m].peerURL())
	}
	c.run(name, "--initial-cluster-state=existing", "--initial-cluster="+strings.Join(initial, ","))
}

func (c *cluster) signal(name string, s syscall.Signal) {
	c.t.Helper()
	if err := c.nodes[name].process.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
	if s == syscall.SIGKILL {
		_ = c.nodes[name].process.Wait()
	}
}

// dial is the port-forward of these tests.
func (c *cluster) dial(ctx context.Context, node string) (net.Conn, error) {
	n, ok := c.nodes[node]
	if !ok {
		return nil, fmt.Errorf("pods \"etcd-%s\" not found", node)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", n.client)
}

func (c *cluster) names() []string {
	var names []string
	for name := range c.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// connect is a client that begins at these nodes, all when none are given.
func (c *cluster) connect(timeout time.Duration, nodes ...string) *etcd.Client {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.names()
	}
	return connect(c.t, etcd.Options{Nodes: nodes, Dial: c.dial, Timeout: timeout, CACertificate: c.ca.certificatePEM(), CAKey: c.ca.keyPEM(c.t)})
}

func connect(t *testing.T, o etcd.Options) *etcd.Client {
	t.Helper()
	client, err := etcd.Connect(o)
	if err != nil {
		t.Fatal("Connect:", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// await observes until something is so.
func (c *cluster) await(what string, so func(etcd.View) bool) etcd.View {
	c.t.Helper()
	client := c.connect(3 * time.Second)
	defer func() { _ = client.Close() }()
	var v etcd.View
	eventually(c.t, what, func() (err error) {
		if v, err = client.Observe(c.t.Context()); err == nil && !so(v) {
			err = fmt.Errorf("seen: %+v", v)
		}
		return err
	})
	return v
}

// eventually tries again until it works: elections, and etcd's rule that voters must have been connected for 5 s.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: still not after %s: %v", what, patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// raw is etcd's own client to one node: it plays kubeadm and the API server.
func (c *cluster) raw(name string) *clientv3.Client {
	c.t.Helper()
	pair, err := tls.X509KeyPair(c.ca.server(c.t, "raw"))
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.ca.certificate)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + c.nodes[name].client}, Logger: zap.NewNop(),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// write is what the API server does all the time: it must go on during everything.
func (c *cluster) write(name string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if _, err := c.raw(name).Put(ctx, "key", "value"); err != nil {
		c.t.Fatal("a write:", err)
	}
}

func (c *cluster) fill(name string, blocks int) {
	c.t.Helper()
	raw := c.raw(name)
	for i := range blocks {
		if _, err := raw.Put(c.t.Context(), fmt.Sprintf("block/%d", i), string(bytes.Repeat([]byte("planted"), 1<<15))); err != nil {
			c.t.Fatal(err)
		}
	}
}

func named(v etcd.View, name string) etcd.Member {
	i := slices.IndexFunc(v.Members, func(m etcd.Member) bool { return m.Name == name })
	if i < 0 {
		return etcd.Member{}
	}
	return v.Members[i]
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
