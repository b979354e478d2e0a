// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// defaultTimeout is Cluster API's: longer than etcd itself tries to carry out a request (7 s).
const defaultTimeout = 15 * time.Second

// Dial opens a connection to the client port of the etcd on a node: a port-forward to its pod.
type Dial func(ctx context.Context, node string) (net.Conn, error)

// Options say how to reach a cluster's etcd.
type Options struct {
	// Nodes are the names of the nodes that have an etcd pod. Members that these name are asked too.
	Nodes []string
	Dial  Dial
	// CACertificate and CAKey are etcd's CA, PEM. They stay in memory.
	CACertificate, CAKey []byte
	// Timeout limits each request, 15 s when 0. A snapshot may take longer, but not pause longer.
	Timeout time.Duration
}

// Client asks the members of one etcd cluster, each over a connection of its own.
type Client struct {
	nodes     []string
	dial      Dial
	authority *authority
	timeout   time.Duration

	mu        sync.Mutex
	endpoints map[string]*endpoint
	// known are the members' names of the last list with a quorum behind it: they answer when our nodes don't.
	known []string
}

// Connect makes a client. It reaches for nothing yet.
func Connect(o Options) (*Client, error) {
	if len(o.Nodes) == 0 {
		return nil, errors.New("etcd: no node with an etcd pod is known, so there is nothing to connect to")
	}
	a, err := newAuthority(o.CACertificate, o.CAKey)
	if err != nil {
		return nil, err
	}
	nodes := slices.Compact(slices.Sorted(slices.Values(o.Nodes)))
	c := &Client{nodes: nodes, dial: o.Dial, authority: a, timeout: o.Timeout, endpoints: map[string]*endpoint{}}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	return c, nil
}

// Close ends all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, e := range c.endpoints {
		errs = append(errs, e.etcd.Close())
	}
	clear(c.endpoints)
	return errors.Join(errs...)
}

// begin is whom to ask first.
func (c *Client) begin() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.nodes, c.known))))
}

func (c *Client) learn(members []Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = nil
	for _, m := range members {
		if m.Started() {
			c.known = append(c.known, m.Name)
		}
	}
}

// endpoint is the connection to the etcd of one node.
type endpoint struct {
	node string
	etcd *clientv3.Client

	mu     sync.Mutex
	failed error
}

func (c *Client) endpoint(node string) (*endpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.endpoints[node]; ok {
		return e, nil
	}
	e := &endpoint{node: node}
	var err error
	e.etcd, err = clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(node, "2379")},
		TLS:       c.authority.config(node),
		// One try: what to do about a member that does not answer is not this client's to decide.
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				conn, err := c.dial(ctx, node)
				e.remember(err)
				return conn, err
			}),
			// A member that comes back is noticed soon: gRPC would wait up to two minutes.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, MaxDelay: 2 * time.Second},
				MinConnectTimeout: c.timeout,
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("etcd on %s: %w", node, err)
	}
	c.endpoints[node] = e
	return e, nil
}

// remember keeps why the last connection failed, nil if it did not: gRPC tells the text only.
func (e *endpoint) remember(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = err
}

// call runs one request under the client's time-out and says why no answer came.
func (c *Client) call(ctx context.Context, e *endpoint, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := request(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("etcd on %s: %w", e.node, context.Cause(ctx))
	case bounded.Err() != nil:
		return fmt.Errorf("etcd on %s: no answer within %s: %w", e.node, c.timeout, context.DeadlineExceeded)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return fmt.Errorf("etcd on %s: %w", e.node, e.failed)
	}
	return fmt.Errorf("etcd on %s: %w", e.node, err)
}

// maintenance is for requests that clientv3 would open a second connection for.
func (e *endpoint) maintenance() pb.MaintenanceClient {
	return pb.NewMaintenanceClient(e.etcd.ActiveConnection())
}
