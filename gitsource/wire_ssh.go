// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"
)

// dialSSH connects, checks the host key, logs in and starts the server program. Everything ends with ctx.
// go-git's own SSH transport is not used: it reads ~/.ssh/config and its handshake can't be cancelled.
func dialSSH(ctx context.Context, loc location, auth Auth, m *meter, s service) (wire, error) {
	conn, err := proxy.Dial(ctx, "tcp", loc.hostPort())
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	stop := func() {
		unwatch()
		_ = conn.Close()
	}
	st := &stream{meter: m, errors: &tail{}, stop: stop}
	client, err := handshake(conn, loc, auth, &st.known)
	if err == nil {
		err = st.startRemote(client, string(s)+" "+shellQuote(loc.path))
	}
	if err != nil {
		stop()
		return nil, &wireError{facts: st.facts(), err: err}
	}
	return st, nil
}

// wireError carries facts of an exchange that failed before it began.
type wireError struct {
	facts facts
	err   error
}

func (w *wireError) Error() string { return w.err.Error() }
func (w *wireError) Unwrap() error { return w.err }

func handshake(conn net.Conn, loc location, auth Auth, known *facts) (*ssh.Client, error) {
	check := auth.hosts.HostKeyCallback()
	algorithms := auth.hosts.HostKeyAlgorithms(loc.hostPort())
	var trusted atomic.Bool // the callback runs in a goroutine of the handshake
	var refused atomic.Pointer[string]
	config := &ssh.ClientConfig{
		User:              loc.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(auth.signer)},
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			err := check(host, addr, key)
			if err != nil {
				why := hostKeyWhy(host, key, err)
				refused.Store(&why)
			}
			trusted.Store(err == nil)
			return err
		},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, loc.hostPort(), config)
	if err == nil {
		return ssh.NewClient(c, channels, requests), nil
	}
	var netErr net.Error
	lost := errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &netErr)
	known.denied = trusted.Load() && !lost
	if why := refused.Load(); why != nil {
		known.hostKey = *why
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if errors.As(err, &negotiation) && slices.Equal(negotiation.SupportedAlgorithms, algorithms) {
		known.hostKey = fmt.Sprintf("the server has no host key of a type that known_hosts has for it (%s)", strings.Join(algorithms, ", "))
	}
	return nil, err
}

func hostKeyWhy(host string, key ssh.PublicKey, err error) string {
	got := key.Type() + " " + ssh.FingerprintSHA256(key)
	name := knownhosts.Normalize(host)
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Sprintf("%s shows host key %s, which is not the one in known_hosts", name, got)
	case knownhosts.IsHostUnknown(err):
		return fmt.Sprintf("known_hosts has no key for %s, which shows %s", name, got)
	}
	return fmt.Sprintf("host key %s of %s is revoked or not valid for it", got, name)
}

func (s *stream) startRemote(client *ssh.Client, command string) error {
	session, err := client.NewSession()
	if err != nil {
		return err
	}
	if s.in, err = session.StdinPipe(); err != nil {
		return err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = s.meter.reader(out)
	session.Stderr = s.errors
	if err := session.Start(command); err != nil {
		return err
	}
	s.wait = sync.OnceValue(session.Wait)
	return nil
}

// shellQuote is git's own quoting (sq_quote_buf): safe in any POSIX shell, and undone by git-shell.
func shellQuote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}
