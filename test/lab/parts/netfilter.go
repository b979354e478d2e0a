// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// netfilterPackages are the Debian packages that kube-proxy calls.
var netfilterPackages = []string{"iptables", "conntrack"} //nolint:gochecknoglobals // read-only table

// addNetfilter copies these packages and what they depend on out of a root file
// system: a tenth of the whole system's size.
func addNetfilter(l *layerWriter, rootfs string) error {
	database, err := readDpkg(rootfs)
	if err != nil {
		return fmt.Errorf("netfilter: %w", err)
	}
	wanted, err := database.filesOf(netfilterPackages)
	if err != nil {
		return fmt.Errorf("netfilter: %w", err)
	}
	return eachEntry(rootfs, func(h *tar.Header, content io.Reader) error {
		if !wanted[h.Name] && !mergedFolder(h) && !isAlternative(h.Name) {
			return nil
		}
		copied := &tar.Header{
			Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Mode: h.Mode, Size: h.Size,
		}
		if err := l.header(copied); err != nil {
			return err
		}
		_, err := io.Copy(l.tar, content)
		return err
	})
}

// mergedFolder tells whether h is a link like /lib to usr/lib, without which no
// program finds its loader.
func mergedFolder(h *tar.Header) bool {
	return h.Typeflag == tar.TypeSymlink && !strings.Contains(h.Name, "/")
}

// isAlternative tells whether name is one of the links by which Debian chooses
// between iptables's two back ends. They belong to no package.
func isAlternative(name string) bool {
	dir, base := path.Split(name)
	return (dir == "usr/sbin/" || dir == "etc/alternatives/") &&
		(strings.HasPrefix(base, "iptables") || strings.HasPrefix(base, "ip6tables"))
}

// eachEntry calls visit with each entry of a tar, names without leading "./".
func eachEntry(file string, visit func(*tar.Header, io.Reader) error) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for entries := tar.NewReader(f); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		h.Name = strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
		if h.Typeflag == tar.TypeLink {
			h.Linkname = strings.TrimPrefix(h.Linkname, "./")
		}
		if err := visit(h, entries); err != nil {
			return err
		}
	}
}

// dpkg is what Debian's package database says.
type dpkg struct {
	// depends maps a package to those it needs, the first of alternatives.
	depends map[string][]string
	files   map[string][]string
}

func readDpkg(rootfs string) (dpkg, error) {
	d := dpkg{depends: map[string][]string{}, files: map[string][]string{}}
	err := eachEntry(rootfs, func(h *tar.Header, content io.Reader) error {
		name, isInfo := strings.CutPrefix(h.Name, "var/lib/dpkg/info/")
		list, isList := strings.CutSuffix(name, ".list")
		isStatus := h.Name == "var/lib/dpkg/status"
		isFileList := isInfo && isList
		if !isStatus && !isFileList {
			return nil
		}
		data, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		if isStatus {
			d.readStatus(string(data))
			return nil
		}
		pkg, _, _ := strings.Cut(list, ":") // libc6:amd64
		d.files[pkg] = strings.Fields(string(data))
		return nil
	})
	return d, err
}

// readStatus reads /var/lib/dpkg/status: paragraphs of "Field: value" lines.
func (d dpkg) readStatus(status string) {
	for _, paragraph := range strings.Split(status, "\n\n") {
		name := ""
		for _, line := range strings.Split(paragraph, "\n") {
			if value, ok := strings.CutPrefix(line, "Package: "); ok {
				name = value
				d.depends[name] = nil
			}
			for _, field := range []string{"Depends: ", "Pre-Depends: "} {
				if value, ok := strings.CutPrefix(line, field); ok {
					d.depends[name] = append(d.depends[name], dependencies(value)...)
				}
			}
		}
	}
}

// dependencies reads "libc6 (>= 2.34), libfoo:any | libbar" as libc6 and libfoo.
func dependencies(value string) []string {
	var names []string
	for _, one := range strings.Split(value, ",") {
		name := strings.TrimSpace(one)
		if end := strings.IndexAny(name, " :(|"); end >= 0 {
			name = name[:end]
		}
		names = append(names, name)
	}
	return names
}

// filesOf lists the files and folders of packages and their dependencies, by
// their place after Debian's /usr merge.
func (d dpkg) filesOf(packages []string) (map[string]bool, error) {
	wanted := map[string]bool{}
	seen := map[string]bool{}
	for todo := packages; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		if d.files[name] == nil {
			continue // virtual: whatever provides it is named by something else
		}
		todo = append(append([]string(nil), todo...), d.depends[name]...)
		for _, file := range d.files[name] {
			wanted[merged(strings.TrimPrefix(file, "/"))] = true
		}
	}
	for _, name := range packages {
		if d.files[name] == nil {
			return nil, fmt.Errorf("package %s is not in the base system: add it to its packages", name)
		}
	}
	delete(wanted, "")
	return wanted, nil
}

func merged(file string) string {
	first, _, _ := strings.Cut(file, "/")
	switch first {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		if strings.Contains(file, "/") {
			return "usr/" + file
		}
	}
	return file
}
