package main

import (
	"bufio"
	"encoding/binary"
	"io"
)

// record is a key and a value as a table holds them.
type record struct{ key, value []byte }

func readBytes(in *bufio.Reader) ([]byte, bool) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err == io.EOF {
		return nil, false
	} else {
		check(err)
	}
	bytes := make([]byte, binary.LittleEndian.Uint32(length[:]))
	_, err := io.ReadFull(in, bytes)
	check(err)
	return bytes, true
}

// readRecords reads keys and values, each after its length as four bytes, lowest first.
func readRecords(from io.Reader) []record {
	in := bufio.NewReaderSize(from, 1<<20)
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

func writeBytes(out *bufio.Writer, bytes []byte) {
	var length [4]byte
	binary.LittleEndian.PutUint32(length[:], uint32(len(bytes)))
	_, err := out.Write(length[:])
	check(err)
	_, err = out.Write(bytes)
	check(err)
}
