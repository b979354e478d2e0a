// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
	"github.com/theseus-gitops/theseus/test/lab/service/haproxy"
)

// ConfigFile is the name of a lab's Config in its folder.
const ConfigFile = "lab.json"

// ReadConfig reads the Config of the lab that lives in dir.
func ReadConfig(dir string) (Config, error) {
	data, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	if err != nil {
		return Config{}, fmt.Errorf("reading the lab's configuration: %w", err)
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("reading the lab's configuration: %w", err)
	}
	return c, nil
}

// Run serves the lab that lives in dir until ctx ends: HTTP, DNS and the load balancer, all on the gateway's address.
func Run(ctx context.Context, dir string, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	config, err := ReadConfig(dir)
	if err != nil {
		return err
	}
	mode, err := engine.DetectMode()
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	web, err := listen.Listen(ctx, "tcp", config.ServiceAddress())
	if err != nil {
		return fmt.Errorf("listening on the lab's gateway: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(web.Close())) }()
	names, err := listen.ListenPacket(ctx, "udp", netip.AddrPortFrom(config.Gateway, 53).String())
	if err != nil {
		return fmt.Errorf("listening on the lab's gateway: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(names.Close())) }()
	balancer, balancerEnded, err := haproxy.Start(ctx, dir, netip.AddrPortFrom(config.Gateway, EndpointPort), out)
	if err != nil {
		return err
	}
	s := New(config, dir, engine.New(mode), balancer, slog.New(slog.NewTextHandler(out, nil)))
	if err := s.Resume(ctx); err != nil {
		return err
	}
	return s.serveUntil(ctx, web, names, balancerEnded)
}

func (s *Server) serveUntil(ctx context.Context, web net.Listener, names net.PacketConn, balancerEnded <-chan error) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(web) }()
	go func() { ended <- s.ServeNames(ctx, names) }()
	s.log.InfoContext(ctx, "serving", "lab", s.config.Lab, "address", web.Addr().String())
	select {
	case err := <-ended:
		return err
	case err := <-balancerEnded:
		if ctx.Err() == nil {
			return fmt.Errorf("haproxy ended: %w", err)
		}
	case <-ctx.Done():
	}
	quiet, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	return server.Shutdown(quiet)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
