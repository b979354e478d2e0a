// SPDX-License-Identifier: Apache-2.0

package parts

// Internal: images and layers are of no use to other packages.

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func newTestLayer(t *testing.T, name, content string) layer {
	t.Helper()
	w, err := newLayer(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.folder("bin"), w.text("bin/"+name, 0o755, content), links(w, "bin/", name, "also-"+name)); err != nil {
		t.Fatal(err)
	}
	l, err := w.close()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func readTar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := files[h.Name]; twice {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		files[h.Name] = string(data) + h.Linkname
	}
}

func TestArchiveSharesLayers(t *testing.T) {
	shared, own := newTestLayer(t, "shared", "s"), newTestLayer(t, "own", "o")
	images := []image{
		{names: []string{"registry.k8s.io/a:1"}, layers: []layer{shared}, run: runConfig{Entrypoint: []string{"/a"}}},
		{names: []string{"registry.k8s.io/b:1", "b:2"}, layers: []layer{shared, own}, run: runConfig{Entrypoint: []string{"/b"}}},
	}
	var out, again bytes.Buffer
	if err := errors.Join(writeArchive(&out, images), writeArchive(&again, images)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("the same images gave different archives")
	}
	files := readTar(t, &out)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 2 || len(manifest[1].Layers) != 2 || manifest[0].Layers[0] != manifest[1].Layers[0] {
		t.Fatalf("manifest %+v: want b to have a's layer and one more", manifest)
	}
	if !slices.Equal(manifest[1].RepoTags, []string{"registry.k8s.io/b:1", "b:2"}) {
		t.Errorf("names %v", manifest[1].RepoTags)
	}
	for _, m := range manifest {
		checkImage(t, files, m.Config, m.Layers)
	}
}

// checkImage recomputes what a container runtime checks: the digest of the
// configuration, and in it those of the layers, uncompressed.
func checkImage(t *testing.T, files map[string]string, config string, layers []string) {
	t.Helper()
	sum := sha256.Sum256([]byte(files[config]))
	if hex.EncodeToString(sum[:])+".json" != config {
		t.Errorf("configuration %s has another digest", config)
	}
	var read struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal([]byte(files[config]), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.RootFS.DiffIDs) != len(layers) {
		t.Fatalf("%d layers, %d digests", len(layers), len(read.RootFS.DiffIDs))
	}
	for i, name := range layers {
		zip, err := gzip.NewReader(strings.NewReader(files[name]))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := "sha256:" + hex.EncodeToString(sum[:]); got != read.RootFS.DiffIDs[i] {
			t.Errorf("layer %s: digest %s, configuration says %s", name, got, read.RootFS.DiffIDs[i])
		}
		if inside := readTar(t, bytes.NewReader(data)); len(inside) != 3 {
			t.Errorf("layer %s holds %v", name, inside)
		}
	}
}

// A small Debian: iptables needs libc6 and libx, which needs nothing; perl is not asked for.
func writeRootfs(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), rootfsFile)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	add := func(name, content, link string) {
		h := &tar.Header{Name: "./" + name, Mode: 0o755, Size: int64(len(content)), Linkname: link, Typeflag: tar.TypeReg}
		switch {
		case link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	add("lib", "", "usr/lib")
	add("usr/", "", "")
	add("usr/lib/", "", "")
	add("usr/lib/libc.so.6", "libc", "")
	add("usr/lib/libx.so.1", "", "libx.so.1.2")
	add("usr/lib/libx.so.1.2", "libx", "")
	add("usr/bin/perl", "perl", "")
	add("usr/sbin/iptables", "", "/etc/alternatives/iptables")
	add("etc/alternatives/iptables", "", "/usr/sbin/iptables-nft")
	add("etc/alternatives/awk", "", "/usr/bin/mawk")
	add("usr/sbin/iptables-nft", "nft", "")
	add("usr/sbin/conntrack", "ct", "")
	add("var/lib/dpkg/status", "Package: iptables\nDepends: libc6 (>= 2.34), libx:any | perl\n\n"+
		"Package: conntrack\nPre-Depends: libc6, netbase-virtual\n\nPackage: perl\n\nPackage: libc6\n\nPackage: libx\n", "")
	for pkg, files := range map[string]string{
		"iptables": "/.\n/usr\n/usr/sbin/iptables-nft\n", "conntrack": "/usr/sbin/conntrack\n", "perl": "/usr/bin/perl\n",
		"libc6:amd64": "/lib\n/lib/libc.so.6\n", "libx": "/usr/lib/libx.so.1\n/usr/lib/libx.so.1.2\n",
	} {
		add("var/lib/dpkg/info/"+pkg+".list", files, "")
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNetfilterTakesPackagesAndTheirNeeds(t *testing.T) {
	rootfs := writeRootfs(t)
	w, err := newLayer(filepath.Join(t.TempDir(), "netfilter"))
	if err != nil {
		t.Fatal(err)
	}
	if err := addNetfilter(w, rootfs); err != nil {
		t.Fatal(err)
	}
	l, err := w.close()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got := sortedKeys(readTar(t, zip))
	want := []string{
		"etc/alternatives/iptables", "lib", "usr", "usr/lib/libc.so.6", "usr/lib/libx.so.1", "usr/lib/libx.so.1.2",
		"usr/sbin/conntrack", "usr/sbin/iptables", "usr/sbin/iptables-nft",
	}
	if !slices.Equal(got, want) {
		t.Errorf("copied %v\nwant %v", got, want)
	}
}

func TestNetfilterNamesAMissingPackage(t *testing.T) {
	d, err := readDpkg(writeRootfs(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.filesOf([]string{"iptables", "ipset"}); err == nil || !strings.Contains(err.Error(), "ipset") {
		t.Errorf("error %v does not name ipset", err)
	}
}

func TestMirrorIsOfAWholeRelease(t *testing.T) {
	const targets = "http://a.example/debian-security bookworm-security main\n" +
		"http://b.example/debian bookworm-updates main\n" +
		"http://c.example/debian bookworm contrib\nhttp://d.example/debian bookworm main\nhttp://e.example/x bookworm main\n"
	if got := mirrorOf(targets); got != "http://d.example/debian" {
		t.Errorf("mirror %q", got)
	}
	if got := mirrorOf(""); got != "" {
		t.Errorf("mirror %q out of nothing", got)
	}
}

func TestOnlyDebianLendsItsMirror(t *testing.T) {
	for system, want := range map[string]bool{
		"NAME=x\nID=debian\n": true, "ID=\"debian\"": true, "ID=ubuntu\nID_LIKE=debian\n": false, "": false,
	} {
		if got := isDebian(system); got != want {
			t.Errorf("%q: %v", system, got)
		}
	}
}

// Each version that Supported lists can be keyed: its mod files are there.
func TestSupportedVersionsHaveTheirFiles(t *testing.T) {
	source, err := FindSource(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Supported() {
		if _, err := v.Node(Debian12).key(source); err != nil {
			t.Error(err)
		}
		if _, err := v.EnvtestPart().key(source); err != nil {
			t.Error(err)
		}
	}
	if _, err := VersionsOf(First); err != nil {
		t.Error(err)
	}
	if _, err := VersionsOf("v1.2.3"); err == nil || !strings.Contains(err.Error(), First) {
		t.Errorf("error %v does not say what there is", err)
	}
}

func TestKubernetesIsStamped(t *testing.T) {
	p := Kubernetes("v1.36.3")
	recipe := strings.Join(p.Recipe, "\n")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3", "-X k8s.io/component-base/version.gitMinor=36",
		"-modfile=v1.36.3.mod", "-trimpath",
	} {
		if !strings.Contains(recipe, want) {
			t.Errorf("recipe has no %s:\n%s", want, recipe)
		}
	}
}
