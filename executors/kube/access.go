// SPDX-License-Identifier: Apache-2.0

// Package kube observes a cluster through its API server, and keeps the logbook and the lock in it.
// It decides nothing, and of workloads changes kube-proxy's image only: executors/coredns and executors/kubeadm do, with its client.
// Start at Connect, then Client.Observe; every error tells an unreachable cluster from a refused or a damaged one.
package kube

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	// defaultTimeout bounds one call; a healthy API server answers ours in well under a second.
	defaultTimeout = 30 * time.Second
	// Above what one pass asks for, so the limiter only ever stops a runaway. API Priority and Fairness,
	// on in every supported server, is what protects the server itself.
	callsPerSecond, callBurst = 50, 100
)

// Access says how to reach a cluster. Exactly one of Kubeconfig and InCluster is to be set.
type Access struct {
	// Kubeconfig is a kubeconfig's text. Only its current context counts. It must be complete in itself:
	// references to files are refused, wherever it was read from, because a kubeconfig from a Secret could
	// otherwise name any file of the job's pod, its own ServiceAccount token among them, and have it sent elsewhere.
	// On a workstation "kubectl config view --raw --flatten --minify" makes such a one.
	Kubeconfig []byte
	// InCluster uses the ServiceAccount of the pod that Theseus runs in.
	InCluster bool
	// AllowExec lets the kubeconfig run a credential plugin.
	AllowExec bool
	// AllowInsecureTLS accepts a server that is not proved by a certificate: insecure-skip-tls-verify, or plain http.
	AllowInsecureTLS bool
	// Timeout bounds each call to the API server; 0 means 30 s.
	Timeout time.Duration
	// Version of Theseus, for the user agent.
	Version string
	// Clock is time.Now when nil. The lock reads it.
	Clock func() time.Time
}

// Client is access to one cluster. It is safe for concurrent use.
type Client struct {
	config  *rest.Config
	kube    kubernetes.Interface
	host    string
	timeout time.Duration
	clock   func() time.Time
	// lease is how long the lock outlives its newest renewal.
	lease time.Duration
	// round is how long one round of a drain waits for pods to end.
	round time.Duration
}

// Connect prepares access to a cluster. It makes no call: a cluster that can't be reached shows at the first one.
// Its errors are about the configuration, and never quote it.
func Connect(a Access) (*Client, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, timeout: config.Timeout, clock: a.Clock, lease: leaseDuration, round: drainRound}
	if c.clock == nil {
		c.clock = time.Now
	}
	server, err := serverURL(config.Host)
	if err != nil {
		return nil, err
	}
	if server.Scheme == "http" && !a.AllowInsecureTLS {
		return nil, fmt.Errorf("access: %w", &NotAllowedError{
			Why: fmt.Sprintf("server http://%s is not protected by TLS", server.Host), Instead: "use https", Field: "access.allowInsecureTLS",
		})
	}
	c.host = server.Host
	ours := rest.CopyConfig(config)
	// Each call has a deadline of its own, whose error says which call it was; this one is behind it.
	ours.Timeout += defaultTimeout
	ours.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	ours.ContentType = "application/vnd.kubernetes.protobuf"
	if c.kube, err = kubernetes.NewForConfig(ours); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	return c, nil
}

// Interface is the client itself, for the executors that change workloads.
func (c *Client) Interface() kubernetes.Interface { return c.kube }

// RESTConfig is a copy of the client's configuration.
func (c *Client) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

func (a Access) config() (*rest.Config, error) {
	var config *rest.Config
	var err error
	switch {
	case a.InCluster && len(a.Kubeconfig) > 0:
		return nil, errors.New("access: both a kubeconfig and inCluster are given: keep one")
	case a.InCluster:
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("access: inCluster: %w", err)
		}
	case len(a.Kubeconfig) > 0:
		if config, err = a.fromKubeconfig(); err != nil {
			return nil, fmt.Errorf("access: kubeconfig: %w", err)
		}
	default:
		return nil, errors.New("access: neither a kubeconfig nor inCluster is given")
	}
	config.Timeout = a.Timeout
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	config.QPS, config.Burst = callsPerSecond, callBurst
	config.UserAgent = "theseus/" + a.Version
	if a.Version == "" {
		config.UserAgent = "theseus"
	}
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// fromKubeconfig does by itself what fluxcd/pkg/runtime/client offers, for three reasons: there an exec plugin or
// insecure TLS that is not allowed is dropped, so that the user sees an unexplained 401 or certificate
// error instead of a refusal; entries of other contexts are refused too; and it asks the server about
// flow control on every start.
func (a Access) fromKubeconfig() (*rest.Config, error) {
	config, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		// The cause is left out on purpose: parsers quote their input, and this input is a secret.
		return nil, errors.New("it can't be parsed: it must be YAML or JSON of kind Config (check it with \"kubectl config view\")")
	}
	if config.CurrentContext == "" {
		return nil, errors.New("it has no current-context: set one")
	}
	if err := api.MinifyConfig(config); err != nil {
		return nil, err
	}
	for name, cluster := range config.Clusters {
		if err := a.allowCluster(name, cluster); err != nil {
			return nil, err
		}
	}
	for name, user := range config.AuthInfos {
		if err := a.allowUser(name, user); err != nil {
			return nil, err
		}
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	if out.ExecProvider != nil {
		out.ExecProvider.StdinUnavailable = true
		out.ExecProvider.StdinUnavailableMessage = "Theseus asks nobody for input"
	}
	return out, nil
}

func (a Access) allowCluster(name string, c *api.Cluster) error {
	switch {
	case c == nil || c.Server == "":
		return fmt.Errorf("cluster %q has no server", name)
	case c.CertificateAuthority != "":
		return fileError("cluster", name, "certificate-authority", "certificate-authority-data")
	case !validProxy(c.ProxyURL):
		return fmt.Errorf("cluster %q has a proxy-url that is no http, https or socks5 URL", name)
	case c.InsecureSkipTLSVerify && !a.AllowInsecureTLS:
		return &NotAllowedError{
			Why: fmt.Sprintf("cluster %q sets insecure-skip-tls-verify", name), Instead: "give certificate-authority-data", Field: "access.allowInsecureTLS",
		}
	}
	return nil
}

func (a Access) allowUser(name string, u *api.AuthInfo) error {
	switch {
	case u == nil:
		return fmt.Errorf("user %q is empty", name)
	case u.TokenFile != "":
		return fileError("user", name, "tokenFile", "token")
	case u.ClientCertificate != "":
		return fileError("user", name, "client-certificate", "client-certificate-data")
	case u.ClientKey != "":
		return fileError("user", name, "client-key", "client-key-data")
	case u.AuthProvider != nil:
		return fmt.Errorf("user %q uses an auth-provider, which Kubernetes has dropped: use a token, a client certificate, or an exec plugin with access.allowExec", name)
	case u.Exec != nil && !a.AllowExec:
		return &NotAllowedError{
			Why: fmt.Sprintf("user %q runs a program for its credentials (exec)", name), Instead: "use a token or a client certificate", Field: "access.allowExec",
		}
	}
	return nil
}

func fileError(kind, name, field, instead string) error {
	return fmt.Errorf("%s %q names a file (%s); a kubeconfig must be complete in itself: give %s (\"kubectl config view --raw --flatten --minify\" does it)", kind, name, field, instead)
}

// validProxy exists because client-go quotes the URL, password and all, when it finds fault with it.
func validProxy(proxy string) bool {
	if proxy == "" {
		return true
	}
	u, err := url.Parse(proxy)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "socks5")
}

// serverURL reads the server of a configuration the way client-go does, https being the default.
func serverURL(server string) (*url.URL, error) {
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, errors.New("access: the server is no URL with a host, such as https://10.0.0.1:6443")
	}
	return u, nil
}
