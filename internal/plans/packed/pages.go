package packed

import (
	"encoding/binary"
	"sync"
)

// pages keep values of keys, each in the page that its key's hash says. They become twice as
// many when they fill up, while there may be more: until then that room is left to the
// garbage collector.
type pages struct {
	mu    sync.Mutex
	bytes []byte // each page begins with the length of what is used of it
	taken int    // bytes, of all pages, with their beginnings
	most  int    // pages: those that there are at first, doubled some times
}

const (
	pageSize   = 2048 // bytes: some forty customers, so that few pages are much fuller than others
	pageHead   = 2
	itemHead   = 2  // the lengths of key and value, of 255 at most
	firstPages = 16 // that there are at first, or down to half as many, so that most is little less than asked for
)

// init makes room for up to so many pages.
func (p *pages) init(most int) {
	first, doublings := most, 0
	for first > firstPages {
		first, doublings = first/2, doublings+1
	}
	p.most = first << doublings
	p.bytes, p.taken = make([]byte, first*pageSize), first*pageHead
}

// used is the used part of a hash's page. The lock is held, as in all that follow.
func (p *pages) used(hash uint64) []byte {
	n := hash % uint64(len(p.bytes)/pageSize)
	page := p.bytes[n*pageSize:][:pageSize:pageSize]
	return page[:max(pageHead, int(binary.LittleEndian.Uint16(page)))]
}

// keep notes how much of a page is used, where it was so much.
func (p *pages) keep(used []byte, before int) {
	p.taken += len(used) - before
	binary.LittleEndian.PutUint16(used, uint16(len(used)))
}

// grow doubles the pages: what is in one is then in that or in its double.
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

// itemAt is the length of the item at a place of a page.
func itemAt(page []byte, at int) int { return itemHead + int(page[at]) + int(page[at+1]) }

// find is where a key's item is in the used part of a page, or the end of that.
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

// set sets a key's value. hashOf is the hash of any key, for when there become more pages.
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

// remove forgets a key.
func (p *pages) remove(hash uint64, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := p.used(hash)
	if at := find(used, key); at < len(used) {
		p.keep(append(used[:at], used[at+itemAt(used, at):]...), len(used))
	}
}
