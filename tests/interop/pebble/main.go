// Command pebble writes and reads SSTables with the Pebble that lakeFS pins, and with the options that lakeFS gives it.
//
//	pebble write FOLDER MIN_SIZE MAX_SIZE RAGGEDNESS < RECORDS   ranges, split by lakeFS's rule and named by their ids
//	pebble time MIN_SIZE MAX_SIZE RAGGEDNESS < RECORDS           the same into nowhere; says how many records a second
//	pebble read FILE > RECORDS                                   what Pebble finds in a table
//
// RECORDS are keys and values, each after its length as four bytes, lowest first.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/sstable"
)

type record struct{ key, value []byte }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	check(err)
	return value
}

func readBytes(in *bufio.Reader) ([]byte, bool) {
	var length uint32
	err := binary.Read(in, binary.LittleEndian, &length)
	if err == io.EOF {
		return nil, false
	}
	check(err)
	bytes := make([]byte, length)
	_, err = io.ReadFull(in, bytes)
	check(err)
	return bytes, true
}

func readRecords() []record {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var records []record
	for {
		key, ok := readBytes(in)
		if !ok {
			return records
		}
		value, _ := readBytes(in)
		records = append(records, record{key, value})
	}
}

// file keeps a table in memory, or forgets it.
type file struct{ bytes []byte }

func (f *file) Write(p []byte) (int, error) { f.bytes = append(f.bytes, p...); return len(p), nil }
func (f *file) Close() error                { return nil }
func (f *file) Sync() error                 { return nil }

type static struct{ properties map[string]string }

func (*static) Add(sstable.InternalKey, []byte) error { return nil }
func (*static) Name() string                          { return "static" }
func (s *static) Finish(into map[string]string) error {
	for key, value := range s.properties {
		into[key] = value
	}
	return nil
}

type table struct {
	file        *file
	writer      *sstable.Writer
	properties  map[string]string
	hash        hash.Hash
	first, last []byte
	count       int
}

func open() *table {
	t := &table{file: &file{}, properties: map[string]string{"type": "ranges"}, hash: sha256.New()}
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

func (t *table) breaks(key []byte, min, max, raggedness uint64) bool {
	size := t.writer.EstimatedSize()
	if size < min {
		return false
	}
	if size >= max {
		return true
	}
	h := fnv.New64a()
	h.Write(key)
	return h.Sum64()%raggedness == 0
}

func write(records []record, folder string, min, max, raggedness uint64) {
	var t *table
	end := func() {
		id := t.close()
		if folder != "" {
			check(os.WriteFile(filepath.Join(folder, id), t.file.bytes, 0o644))
			fmt.Println(id, t.properties["estimated_size_bytes"], t.count)
		}
		t = nil
	}
	for _, r := range records {
		if t == nil {
			t = open()
		}
		t.add(r)
		if t.breaks(r.key, min, max, raggedness) {
			end()
		}
	}
	if t != nil {
		end()
	}
}

func read(path string) {
	f, err := os.Open(path)
	check(err)
	r, err := sstable.NewReader(f, sstable.ReaderOptions{})
	check(err)
	defer r.Close()
	it, err := r.NewIter(nil, nil)
	check(err)
	defer it.Close()
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	for key, lazy := it.First(); key != nil; key, lazy = it.Next() {
		value, _, err := lazy.Value(nil)
		check(err)
		for _, bytes := range [][]byte{key.UserKey, value} {
			check(binary.Write(out, binary.LittleEndian, uint32(len(bytes))))
			_, err := out.Write(bytes)
			check(err)
		}
	}
}

func main() {
	arguments := os.Args[1:]
	switch {
	case len(arguments) == 5 && arguments[0] == "write":
		write(readRecords(), arguments[1], number(arguments[2]), number(arguments[3]), number(arguments[4]))
	case len(arguments) == 4 && arguments[0] == "time":
		records := readRecords()
		start := time.Now()
		write(records, "", number(arguments[1]), number(arguments[2]), number(arguments[3]))
		fmt.Printf("%.0f\n", float64(len(records))/time.Since(start).Seconds())
	case len(arguments) == 2 && arguments[0] == "read":
		read(arguments[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: pebble write FOLDER MIN MAX RAGGEDNESS | time MIN MAX RAGGEDNESS | read FILE")
		os.Exit(2)
	}
}
