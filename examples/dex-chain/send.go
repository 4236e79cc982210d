package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"net/url"
	"time"
)

var owners = []string{"alice", "bob", "carol", "dave"}

// setup makes a market with four traders. Sent a second time, the chain has these commands already and refuses them.
func setup() (commands []command) {
	commands = append(commands,
		command{Asset: &asset{"USD", 2}}, command{Asset: &asset{"GOLD", 0}},
		command{Market: &market{"GOLD-USD", "GOLD", "USD"}})
	for _, owner := range owners {
		commands = append(commands,
			command{Move: &transfer{"bridge", owner, "USD", 5_000_000_00}},
			command{Move: &transfer{"bridge", owner, "GOLD", 10_000}})
	}
	return commands
}

// send broadcasts a bounded number of commands: mostly fills near a price that wanders, some transfers, and one in
// twenty that the chain refuses.
func send(node string, count, rate int, seed int64) error {
	random := rand.New(rand.NewSource(seed))
	commands, price := setup(), int64(195_000)
	for range count {
		buyer := random.Intn(len(owners))
		seller := (buyer + 1 + random.Intn(len(owners)-1)) % len(owners)
		price += random.Int63n(401) - 200
		taker := []string{"buyer", "seller"}[random.Intn(2)]
		switch draw := random.Intn(20); {
		case draw == 0:
			commands = append(commands, command{Move: &transfer{owners[buyer], owners[seller], "USD", 1e15}})
		case draw < 5:
			commands = append(commands, command{Move: &transfer{owners[buyer], owners[seller], "USD", 1 + random.Int63n(5_000)}})
		default:
			commands = append(commands, command{Fill: &fill{"GOLD-USD", owners[buyer], owners[seller], taker, price, 1 + random.Int63n(9)}})
		}
	}
	client := http.Client{Timeout: 10 * time.Second}
	for number, c := range commands {
		c.Memo = fmt.Sprintf("%d-%d", seed, number)
		if err := broadcast(&client, node, c); err != nil {
			return fmt.Errorf("transaction %d of %d: %w", number+1, len(commands), err)
		}
		time.Sleep(time.Second / time.Duration(max(rate, 1)))
	}
	fmt.Printf("sent %d transactions\n", len(commands))
	return nil
}

func broadcast(client *http.Client, node string, c command) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	reply, err := client.Get(node + "/broadcast_tx_sync?tx=0x" + url.QueryEscape(fmt.Sprintf("%x", text)))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	var body struct {
		Error  *struct{ Message, Data string }
		Result struct {
			Code uint32
			Log  string
		}
	}
	if err := json.NewDecoder(reply.Body).Decode(&body); err != nil {
		return err
	}
	if body.Error != nil {
		return fmt.Errorf("%s: %s", body.Error.Message, body.Error.Data)
	}
	if body.Result.Code != 0 {
		return fmt.Errorf("refused with code %d: %s", body.Result.Code, body.Result.Log)
	}
	return nil
}
