// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"cmp"
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

type scheme int

const (
	schemeLocal scheme = iota // a directory of this machine
	schemeHTTP
	schemeHTTPS
	schemeSSH
)

// location is a parsed repository URL that holds no secret.
type location struct {
	scheme  scheme
	user    string // SSH only
	host    string // without port and brackets
	port    string // "" is the scheme's own
	path    string
	display string // for messages
}

// hostPort is the address to dial.
func (l location) hostPort() string {
	port := l.port
	if port == "" {
		port = defaultPort(l.scheme)
	}
	return net.JoinHostPort(l.host, port)
}

func defaultPort(s scheme) string {
	return map[scheme]string{schemeHTTP: "80", schemeHTTPS: "443", schemeSSH: "22"}[s]
}

// parseLocation never repeats its input in an error: it may hold a password.
func parseLocation(raw string) (location, error) {
	if raw == "" {
		return location{}, badOption("the repository URL is empty")
	}
	if strings.IndexFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
		return location{}, badOption("the repository URL has a control character (a line break at its end?)")
	}
	if strings.Contains(raw, "://") {
		return parseURL(raw)
	}
	if colon := strings.IndexByte(raw, ':'); colon > 0 && !strings.Contains(raw[:colon], "/") {
		return parseSCP(raw[:colon], raw[colon+1:])
	}
	return localLocation(raw)
}

func parseURL(raw string) (location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return location{}, badOption("the repository URL can't be parsed; expected https://host/path, ssh://user@host/path or file:///path")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return location{}, badOption("the repository URL of host %s has a ? or # part; put credentials into the Secret, not into the URL", u.Hostname())
	}
	if _, has := u.User.Password(); has {
		return location{}, badOption("the repository URL of host %s holds a password; put username and password into the Secret, not into the URL", u.Hostname())
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return location{}, badOption("file:// URL names host %s; write file:///absolute/path", u.Host)
		}
		return localLocation(u.Path)
	case "http", "https":
		return httpLocation(u)
	case "ssh":
		return sshLocation(u.User.Username(), u.Hostname(), u.Port(), u.Path)
	}
	return location{}, badOption("scheme %s:// is not supported; use https, ssh or file", u.Scheme)
}

func httpLocation(u *url.URL) (location, error) {
	if u.User != nil {
		// Some hosts accept a token in the place of the user name, so a lone name may be a secret too.
		return location{}, badOption("the repository URL of host %s holds a user name or token; put it into the Secret (username, password or bearerToken)", u.Hostname())
	}
	if u.Hostname() == "" {
		return location{}, badOption("the repository URL has no host")
	}
	l := location{scheme: schemeHTTPS, host: u.Hostname(), port: u.Port(), path: strings.TrimRight(u.Path, "/")}
	if u.Scheme == "http" {
		l.scheme = schemeHTTP
	}
	l.display = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: l.path}).String()
	return l, nil
}

// parseSCP reads git's short form user@host:path.
func parseSCP(userHost, path string) (location, error) {
	if strings.HasPrefix(path, ":") {
		return location{}, badOption("the repository URL names a remote helper of git (name::address), which is not supported; use https, ssh or file")
	}
	if strings.Contains(path, "@") {
		return location{}, badOption("the repository URL has an @ after its first colon, which looks like a password; write ssh://user@host/path")
	}
	user, host, found := strings.Cut(userHost, "@")
	if !found {
		user, host = "", userHost
	}
	return sshLocation(user, host, "", path)
}

func sshLocation(user, host, port, path string) (location, error) {
	if host == "" || strings.Trim(path, "/") == "" {
		return location{}, badOption("the SSH URL needs a host and a path: ssh://user@host/path")
	}
	if strings.HasPrefix(host, "-") || strings.HasPrefix(path, "-") {
		return location{}, badOption("the SSH URL has a host or path that starts with -")
	}
	// git's own rule: ssh://host/~user/x means ~user/x on the server.
	if strings.HasPrefix(path, "/~") {
		path = path[1:]
	}
	l := location{scheme: schemeSSH, user: cmp.Or(user, "git"), host: host, port: port, path: path}
	shown := host
	if strings.Contains(host, ":") {
		shown = "[" + host + "]"
	}
	if port != "" {
		shown += ":" + port
	}
	l.display = "ssh://" + shown + "/" + strings.TrimPrefix(path, "/")
	return l, nil
}

func localLocation(path string) (location, error) {
	abs, err := filepath.Abs(path)
	if err != nil || path == "" {
		return location{}, badOption("the local repository path can't be made absolute")
	}
	return location{scheme: schemeLocal, path: abs, display: "file://" + filepath.ToSlash(abs)}, nil
}
