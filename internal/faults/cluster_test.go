package faults

import (
	"net/http"
	"testing"
	"time"
)

// cluster is nodes of quotad on one database, each behind a proxy of its own, and all
// behind one on their way to PostgreSQL.
type cluster struct {
	t        testing.TB
	binary   string
	database *proxy
	url      string // of the database, through its proxy
	nodes    []*node
	client   *http.Client
}

// node is a place for a quotad: clients find whichever runs there by its proxy.
type node struct {
	front   *proxy
	process *process
	flags   []string
	url     string // of the database, by the node's way to it
}

// stalls bounds how long a request is held up.
const stalls = 30 * time.Millisecond

// newCluster starts nodes, without faults yet, and writes the world.
func newCluster(t testing.TB, seed uint64, databaseURL string, nodes int, kinds ...fault) *cluster {
	t.Helper()
	c := &cluster{t: t, binary: build(t), client: newHTTPClient()}
	c.database = newProxy(t, addressOf(t, databaseURL), toPostgres, newDice(seed, 0, stalls, kinds...))
	c.url = throughProxy(t, databaseURL, c.database)
	for i := range nodes {
		n := &node{flags: []string{[]string{"--lanes=1", "--lanes=2", "--lanes=3"}[i%3]}, url: c.url}
		c.nodes = append(c.nodes, n)
		n.process = launch(t, c.binary, n.url, n.flags...)
		n.front = newProxy(t, address{"tcp", n.process.at}, overHTTP, newDice(seed+uint64(i)+1, 0, stalls, kinds...))
	}
	t.Cleanup(c.client.CloseIdleConnections)
	setUp(t, "http://"+c.nodes[0].process.at)
	return c
}

// begin sets the odds of a fault in one exchange over HTTP, and in one with PostgreSQL.
func (c *cluster) begin(http, postgres float64) {
	c.database.dice.set(postgres)
	for _, n := range c.nodes {
		n.front.dice.set(http)
	}
}

// send sends a request once, to one node.
func (c *cluster) send(r request, node int) (answer, error) {
	return send(c.client, r, "http://"+c.nodes[node].front.addr())
}

// strike kills a node with -9, and starts another in its place.
func (c *cluster) strike(i int) {
	c.t.Helper()
	n := c.nodes[i]
	n.process.kill()
	n.process = launch(c.t, c.binary, n.url, n.flags...)
	n.front.to(address{"tcp", n.process.at})
}

// rest ends all faults, stops the nodes in order and starts them again, so that nothing
// of what was cut is still under way in them.
func (c *cluster) rest() {
	c.t.Helper()
	c.begin(0, 0)
	for _, n := range c.nodes {
		n.process.stop()
	}
	c.client.CloseIdleConnections()
	for _, n := range c.nodes {
		n.process = launch(c.t, c.binary, n.url, n.flags...)
		n.front.to(address{"tcp", n.process.at})
	}
}

// faults is how often each kind happened, over HTTP and on the way to PostgreSQL.
func (c *cluster) faults() (http, postgres map[fault]int64) {
	http, postgres = make(map[fault]int64), make(map[fault]int64)
	for f := cutBefore; f < numFaults; f++ {
		for _, n := range c.nodes {
			http[f] += n.front.count(f)
		}
		postgres[f] = c.database.count(f)
	}
	return http, postgres
}
