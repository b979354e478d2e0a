// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"runtime"
	"time"
)

// layer is one layer of a container image in a file of its own.
type layer struct {
	path string
	// diffID is the digest of the tar, uncompressed.
	diffID string
}

// layerWriter writes a layer in which the same content always gives the same
// bytes: no times, no owners but root.
type layerWriter struct {
	path string
	file *os.File
	zip  *gzip.Writer
	sum  hash.Hash
	tar  *tar.Writer
}

// newLayer starts a layer. Compressed ones are smaller in a machine's content
// store, of which every machine has a copy.
func newLayer(path string) (*layerWriter, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	zip, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &layerWriter{path: path, file: file, zip: zip, sum: sum, tar: tar.NewWriter(io.MultiWriter(zip, sum))}, nil
}

// folder adds folders, given from the outermost to the innermost.
func (l *layerWriter) folder(names ...string) error {
	for _, name := range names {
		if err := l.header(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	return nil
}

// program adds the file from as an executable.
func (l *layerWriter) program(name, from string) (err error) {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("layer: %w", err)
	}
	if err := l.header(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(l.tar, file)
	return err
}

// text adds a file of the given content.
func (l *layerWriter) text(name string, mode int64, content string) error {
	if err := l.header(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := io.WriteString(l.tar, content)
	return err
}

// link adds a symbolic link.
func (l *layerWriter) link(name, target string) error {
	return l.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
}

func (l *layerWriter) header(h *tar.Header) error {
	h.ModTime = time.Unix(0, 0)
	return l.tar.WriteHeader(h)
}

// close ends the layer.
func (l *layerWriter) close() (layer, error) {
	if err := errors.Join(l.tar.Close(), l.zip.Close(), l.file.Close()); err != nil {
		return layer{}, fmt.Errorf("layer %s: %w", l.path, err)
	}
	return layer{path: l.path, diffID: "sha256:" + hex.EncodeToString(l.sum.Sum(nil))}, nil
}

// tarLayer takes a tar that exists as a layer.
func tarLayer(path string) (_ layer, err error) {
	file, err := os.Open(path)
	if err != nil {
		return layer{}, fmt.Errorf("layer: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return layer{}, fmt.Errorf("layer: %w", err)
	}
	return layer{path: path, diffID: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// image is a container image: its names, layers from the bottom up, and how it runs.
type image struct {
	names  []string
	layers []layer
	run    runConfig
}

// runConfig has the fields of an image's configuration that the lab sets
// (github.com/opencontainers/image-spec, config.md).
type runConfig struct {
	Env        []string            `json:"Env,omitempty"`
	Entrypoint []string            `json:"Entrypoint,omitempty"`
	StopSignal string              `json:"StopSignal,omitempty"`
	Volumes    map[string]struct{} `json:"Volumes,omitempty"`
}

// writeArchive writes images as docker save would, which both docker load and
// ctr images import read. A layer that several images share is in it once.
func writeArchive(w io.Writer, images []image) error {
	archive := tar.NewWriter(w)
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var manifest []entry
	written := map[string]bool{}
	for _, img := range images {
		e := entry{RepoTags: img.names}
		for _, l := range img.layers {
			name := hexOf(l.diffID) + "/layer.tar"
			e.Layers = append(e.Layers, name)
			if written[name] {
				continue
			}
			written[name] = true
			if err := copyInto(archive, name, l.path); err != nil {
				return err
			}
		}
		config, err := img.config()
		if err != nil {
			return err
		}
		sum := sha256.Sum256(config)
		e.Config = hex.EncodeToString(sum[:]) + ".json"
		if !written[e.Config] {
			written[e.Config] = true
			if err := addBytes(archive, e.Config, config); err != nil {
				return err
			}
		}
		manifest = append(manifest, e)
	}
	list, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := addBytes(archive, "manifest.json", list); err != nil {
		return err
	}
	return archive.Close()
}

func (i image) config() ([]byte, error) {
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	fs := rootfs{Type: "layers"}
	for _, l := range i.layers {
		fs.DiffIDs = append(fs.DiffIDs, l.diffID)
	}
	return json.Marshal(struct {
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Created      string    `json:"created"`
		Config       runConfig `json:"config"`
		RootFS       rootfs    `json:"rootfs"`
	}{runtime.GOARCH, "linux", "1970-01-01T00:00:00Z", i.run, fs})
}

func hexOf(digest string) string { return digest[len("sha256:"):] }

func copyInto(archive *tar.Writer, name, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

func addBytes(archive *tar.Writer, name string, data []byte) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := io.Copy(archive, bytes.NewReader(data))
	return err
}
