package packed

import (
	"encoding/binary"
	"sync"
)

// pages stores the values of one share of the keys. A key's hash selects its page. When half of the bytes
// are used, the number of pages is doubled, up to the number most. Until then the memory is free for
// other purposes.
type pages struct {
	mu    sync.Mutex
	bytes []byte // each page begins with the length of its used part
	taken int    // used bytes of all pages, including page heads
	most  int    // greatest number of pages: the first number, doubled several times
}

const (
	pageSize   = 2048 // bytes; pages with some forty customers each fill almost evenly
	pageHead   = 2
	itemHead   = 2  // lengths of key and value, of 255 at most
	firstPages = 16 // greatest initial number of pages; the least is half of it, or most if most is less
)

// init creates the first pages. most is the greatest number of pages, which rounding may lower a little.
func (p *pages) init(most int) {
	first, doublings := most, 0
	for first > firstPages {
		first, doublings = first/2, doublings+1
	}
	p.most = first << doublings
	p.bytes, p.taken = make([]byte, first*pageSize), first*pageHead
}

// used returns the used part of a hash's page. The caller must hold the lock, also for keep and grow.
func (p *pages) used(hash uint64) []byte {
	n := hash % uint64(len(p.bytes)/pageSize)
	page := p.bytes[n*pageSize:][:pageSize:pageSize]
	return page[:max(pageHead, int(binary.LittleEndian.Uint16(page)))]
}

// keep stores the present length of a page's used part. before is the previous length.
func (p *pages) keep(used []byte, before int) {
	p.taken += len(used) - before
	binary.LittleEndian.PutUint16(used, uint16(len(used)))
}

// grow doubles the number of pages. An item of page n moves to page n or to page n plus the old number of
// pages.
func (p *pages) grow(hash func([]byte) uint64) {
	old := p.bytes
	p.bytes, p.taken = make([]byte, 2*len(old)), len(old)/pageSize*2*pageHead
	for from := 0; from < len(old); from += pageSize {
		page := old[from:][:pageSize]
		for at := pageHead; at < int(binary.LittleEndian.Uint16(page)); at += itemAt(page, at) {
			item := page[at:][:itemAt(page, at)]
			used := p.used(hash(item[itemHead:][:item[0]]))
			p.keep(append(used, item...), len(used))
		}
	}
}

// itemAt returns the length of the item that begins at position at.
func itemAt(page []byte, at int) int { return itemHead + int(page[at]) + int(page[at+1]) }

// find returns the position of a key's item in the used part of a page. If the page has no such item,
// find returns the end of the used part.
func find(used []byte, key string) int {
	at := pageHead
	for at < len(used) {
		name := used[at+itemHead:][:used[at]]
		if string(name) == key {
			break
		}
		at += itemAt(used, at)
	}
	return at
}

// get appends a key's value to a buffer.
func (p *pages) get(b []byte, hash uint64, key string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := p.used(hash)
	if at := find(used, key); at < len(used) {
		b = append(b, used[at+itemHead+len(key):at+itemAt(used, at)]...)
	}
	return b
}

// set sets a key's value. hashOf computes the hash of any key for grow.
func (p *pages) set(hash uint64, key string, value []byte, hashOf func([]byte) uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken > len(p.bytes)/2 && len(p.bytes) < p.most*pageSize {
		p.grow(hashOf)
	}
	used := p.used(hash)
	before := len(used)
	if at := find(used, key); at < len(used) {
		used = append(used[:at], used[at+itemAt(used, at):]...)
	}
	for len(used)+itemHead+len(key)+len(value) > pageSize {
		used = append(used[:pageHead], used[pageHead+itemAt(used, pageHead):]...)
	}
	used = append(used, byte(len(key)), byte(len(value)))
	p.keep(append(append(used, key...), value...), before)
}

// remove removes a key and its value.
func (p *pages) remove(hash uint64, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := p.used(hash)
	if at := find(used, key); at < len(used) {
		p.keep(append(used[:at], used[at+itemAt(used, at):]...), len(used))
	}
}
