// Command pebble writes and reads SSTables with the Pebble that lakeFS pins, and with the options that lakeFS gives it.
//
//	pebble write FOLDER MIN_SIZE MAX_SIZE RAGGEDNESS NAME=VALUE... < RECORDS   tables, split by lakeFS's rule, named by their ids;
//	                                                                           prints ids, estimated sizes, counts
//	pebble time MIN_SIZE MAX_SIZE RAGGEDNESS < RECORDS                         the same into nowhere: seconds, tables, bytes, processor seconds
//	pebble read FILE > RECORDS                                                 what Pebble finds in a table
//	pebble verify FILE...                                                      all blocks' checksums and the order of all keys
//	pebble seek FILE < RECORDS                                                 whether each key is found with its value
//
// RECORDS are keys and values, each after its length as four bytes, lowest first. NAME=VALUE are properties of the tables
// (by default type=ranges), part of their ids.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/sstable"
)

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

// processor says how many seconds of processors this program has had.
func processor() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func ruleOf(words []string) rule {
	return rule{number(words[0]), number(words[1]), number(words[2])}
}

func open(path string) *sstable.Reader {
	f, err := os.Open(path)
	check(err)
	r, err := sstable.NewReader(f, sstable.ReaderOptions{})
	check(err)
	return r
}

// each calls a function for all records of a table, in their order.
func each(path string, call func(key, value []byte)) *sstable.Reader {
	r := open(path)
	it, err := r.NewIter(nil, nil)
	check(err)
	for key, lazy := it.First(); key != nil; key, lazy = it.Next() {
		value, _, err := lazy.Value(nil)
		check(err)
		call(key.UserKey, value)
	}
	check(it.Error())
	check(it.Close())
	return r
}

func read(path string) {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	r := each(path, func(key, value []byte) {
		writeBytes(out, key)
		writeBytes(out, value)
	})
	check(r.Close())
}

func verify(path string) {
	var last []byte
	count := uint64(0)
	r := each(path, func(key, _ []byte) {
		if count > 0 && bytes.Compare(last, key) >= 0 {
			check(fmt.Errorf("%s: expected a key after %q, found %q", path, last, key))
		}
		last = append(last[:0], key...)
		count++
	})
	check(r.ValidateBlockChecksums())
	if r.Properties.NumEntries != count {
		check(fmt.Errorf("%s: expected %d entries, found %d", path, r.Properties.NumEntries, count))
	}
	p := r.Properties
	fmt.Println(count, p.NumDataBlocks, p.IndexType, p.IndexPartitions, p.UserProperties["type"], p.UserProperties["count"])
	check(r.Close())
}

// seek looks each key up, as lakeFS does for one object.
func seek(path string, records []record) {
	r := open(path)
	it, err := r.NewIter(nil, nil)
	check(err)
	for _, wanted := range records {
		key, lazy := it.SeekGE(wanted.key, 0)
		if key == nil || !bytes.Equal(key.UserKey, wanted.key) {
			check(fmt.Errorf("%s: expected the key %q, found another", path, wanted.key))
		}
		value, _, err := lazy.Value(nil)
		check(err)
		if !bytes.Equal(value, wanted.value) {
			check(errors.New(path + ": expected the value of the key, found another"))
		}
	}
	fmt.Println(len(records))
	check(it.Close())
	check(r.Close())
}

func main() {
	words := os.Args[1:]
	switch {
	case len(words) >= 5 && words[0] == "write":
		said := map[string]string{}
		for _, word := range words[5:] {
			name, value, _ := strings.Cut(word, "=")
			said[name] = value
		}
		if len(said) == 0 {
			said["type"] = "ranges"
		}
		lines, _ := writeTables(readRecords(os.Stdin), words[1], ruleOf(words[2:]), said)
		fmt.Println(strings.Join(lines, "\n"))
	case len(words) == 4 && words[0] == "time":
		records := readRecords(os.Stdin)
		start, worked := time.Now(), processor()
		lines, size := writeTables(records, "", ruleOf(words[1:]), map[string]string{"type": "ranges"})
		fmt.Println(time.Since(start).Seconds(), len(lines), size, processor()-worked)
	case len(words) == 2 && words[0] == "read":
		read(words[1])
	case len(words) >= 2 && words[0] == "verify":
		for _, path := range words[1:] {
			verify(path)
		}
	case len(words) == 2 && words[0] == "seek":
		seek(words[1], readRecords(os.Stdin))
	default:
		fmt.Fprintln(os.Stderr, "usage: pebble write FOLDER MIN MAX RAGGEDNESS NAME=VALUE... | time MIN MAX RAGGEDNESS | read FILE | verify FILE... | seek FILE")
		os.Exit(2)
	}
}
