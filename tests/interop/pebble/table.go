package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/fnv"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/cockroachdb/pebble/sstable"
)

// file keeps a table in memory.
type file struct{ bytes []byte }

func (f *file) Write(p []byte) (int, error) { f.bytes = append(f.bytes, p...); return len(p), nil }
func (f *file) Close() error                { return nil }
func (f *file) Sync() error                 { return nil }

// static hands fixed properties to Pebble; its name is among the properties of each table.
type static struct{ properties map[string]string }

func (*static) Add(sstable.InternalKey, []byte) error { return nil }
func (*static) Name() string                          { return "static" }
func (s *static) Finish(into map[string]string) error {
	for key, value := range s.properties {
		into[key] = value
	}
	return nil
}

// rule says where one range ends and the next begins.
type rule struct{ min, max, raggedness uint64 }

// table is written by Pebble, and hashed for its name meanwhile.
type table struct {
	file        *file
	writer      *sstable.Writer
	properties  map[string]string
	hash        hash.Hash
	first, last []byte
	count       int
}

func newTable(said map[string]string) *table {
	t := &table{file: &file{}, properties: map[string]string{}, hash: sha256.New()}
	for key, value := range said {
		t.properties[key] = value
	}
	t.writer = sstable.NewWriter(t.file, sstable.WriterOptions{
		Compression: sstable.SnappyCompression,
		TablePropertyCollectors: []func() sstable.TablePropertyCollector{
			func() sstable.TablePropertyCollector { return &static{t.properties} },
		},
	})
	return t
}

func (t *table) hashed(bytes []byte) {
	t.hash.Write([]byte(strconv.Itoa(len(bytes))))
	t.hash.Write(bytes)
	t.hash.Write([]byte("|"))
}

func (t *table) add(r record) {
	check(t.writer.Set(r.key, r.value))
	if t.count == 0 {
		t.first = r.key
	}
	t.last = r.key
	t.count++
	t.hashed(r.key)
	t.hashed(r.value)
}

func integer(h hash.Hash, value int) {
	h.Write([]byte{2, 8})
	check(binary.Write(h, binary.BigEndian, int64(value)))
}

func text(h hash.Hash, value string) {
	h.Write([]byte{1})
	integer(h, len(value))
	h.Write([]byte(value))
}

// close ends the table and returns its id.
func (t *table) close() string {
	t.hash.Write([]byte{4})
	integer(t.hash, len(t.properties))
	keys := make([]string, 0, len(t.properties))
	for key := range t.properties {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		text(t.hash, key)
		text(t.hash, t.properties[key])
	}
	t.properties["estimated_size_bytes"] = strconv.FormatUint(t.writer.EstimatedSize(), 10)
	t.properties["min_key"] = string(t.first)
	t.properties["max_key"] = string(t.last)
	t.properties["count"] = strconv.Itoa(t.count)
	check(t.writer.Close())
	return hex.EncodeToString(t.hash.Sum(nil))
}

func (t *table) breaksAfter(key []byte, by rule) bool {
	size := t.writer.EstimatedSize()
	if size < by.min {
		return false
	}
	if size >= by.max {
		return true
	}
	h := fnv.New64a()
	h.Write(key)
	return h.Sum64()%by.raggedness == 0
}

// writeTables splits records into tables, puts them into a folder (none: nowhere) and tells of each its id, estimated size and count,
// and the bytes of all.
func writeTables(records []record, folder string, by rule, said map[string]string) (lines []string, size int) {
	var t *table
	end := func() {
		id := t.close()
		lines = append(lines, id+" "+t.properties["estimated_size_bytes"]+" "+t.properties["count"])
		size += len(t.file.bytes)
		if folder != "" {
			check(os.WriteFile(filepath.Join(folder, id), t.file.bytes, 0o644))
		}
		t = nil
	}
	for _, r := range records {
		if t == nil {
			t = newTable(said)
		}
		t.add(r)
		if t.breaksAfter(r.key, by) {
			end()
		}
	}
	if t != nil {
		end()
	}
	return lines, size
}
