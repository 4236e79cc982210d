// A small foreign chain to write a decoder for: a spot exchange as a CometBFT 0.38 application. Its events have the form
// of typed events of common application frameworks, not of Tradewind's tables.
//
//	dex-chain serve --listen tcp://127.0.0.1:26658
//	dex-chain send --node http://127.0.0.1:26657 --count 200
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"syscall"

	"github.com/cometbft/cometbft/abci/server"
	abci "github.com/cometbft/cometbft/abci/types"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dex-chain:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: dex-chain serve|send [options]")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	switch args[0] {
	case "serve":
		listen := flags.String("listen", "tcp://127.0.0.1:26658", "address of the application for CometBFT's --proxy_app")
		flags.Parse(args[1:])
		return serve(*listen)
	case "send":
		node := flags.String("node", "http://127.0.0.1:26657", "RPC of the node")
		count := flags.Int("count", 200, "transactions to send, after those that set the chain up")
		rate := flags.Int("rate", 20, "transactions a second")
		seed := flags.Int64("seed", 1, "seed of the random commands; give a second run another one")
		flags.Parse(args[1:])
		return send(*node, *count, *rate, *seed)
	}
	return fmt.Errorf("no command %q: serve or send", args[0])
}

func serve(listen string) error {
	socket, err := server.NewServer(listen, "socket", &app{state: newState()})
	if err != nil {
		return err
	}
	if err := socket.Start(); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	select {
	case <-stop:
		return socket.Stop()
	case <-socket.Quit():
		return fmt.Errorf("the socket server ended")
	}
}

type app struct {
	abci.BaseApplication
	state *state
}

// Info: an application that was restarted has height 0, and CometBFT replays the chain to it.
func (a *app) Info(context.Context, *abci.RequestInfo) (*abci.ResponseInfo, error) {
	response := &abci.ResponseInfo{Data: "dex-chain", LastBlockHeight: a.state.Height}
	if a.state.Height > 0 {
		response.LastBlockAppHash = a.state.hash()
	}
	return response, nil
}

func (a *app) CheckTx(_ context.Context, request *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	if _, err := parse(request.Tx); err != nil {
		return &abci.ResponseCheckTx{Code: 1, Log: err.Error()}, nil
	}
	return &abci.ResponseCheckTx{}, nil
}

// FinalizeBlock executes a block. Commit has nothing to do: the state is in memory.
func (a *app) FinalizeBlock(_ context.Context, request *abci.RequestFinalizeBlock) (*abci.ResponseFinalizeBlock, error) {
	response := &abci.ResponseFinalizeBlock{}
	response.Events = append(response.Events, block("BeginBlock", "EventBlockStarted", "txs", uint32(len(request.Txs))))
	marks := map[string]int64{}
	for _, tx := range request.Txs {
		response.TxResults = append(response.TxResults, a.execute(tx, marks))
	}
	markets := make([]string, 0, len(marks))
	for symbol := range marks {
		markets = append(markets, symbol)
	}
	sort.Strings(markets)
	for _, symbol := range markets {
		mark := strconv.FormatInt(marks[symbol], 10)
		response.Events = append(response.Events, block("EndBlock", "EventMarkPrice", "market", symbol, "price", mark))
	}
	a.state.Height = request.Height
	response.AppHash = a.state.hash()
	return response, nil
}

func (a *app) execute(tx []byte, marks map[string]int64) *abci.ExecTxResult {
	// As in common frameworks, a failed transaction has events, too: those from before it failed.
	events := []abci.Event{{Type: "message", Attributes: attributes("action", "dex.v1.MsgCommand", "msg_index", "0")}}
	c, err := parse(tx)
	if err != nil {
		return &abci.ExecTxResult{Code: 1, Log: err.Error(), Events: events}
	}
	executed, err := a.state.apply(c)
	if err != nil {
		return &abci.ExecTxResult{Code: 2, Log: err.Error(), Events: events}
	}
	for _, event := range executed {
		event.Attributes = append(event.Attributes, attributes("msg_index", "0")...)
		events = append(events, event)
	}
	if c.Fill != nil {
		marks[c.Fill.Market] = c.Fill.Price
	}
	return &abci.ExecTxResult{Events: events}
}

// block is a typed event of no transaction.
func block(mode, name string, pairs ...any) abci.Event {
	event := typed(name, pairs...)
	event.Attributes = append(event.Attributes, attributes("mode", mode)...)
	return event
}

// typed is an event whose values are JSON: text in quotes, small numbers without.
func typed(name string, pairs ...any) abci.Event {
	var texts []string
	for at := 0; at < len(pairs); at += 2 {
		value, err := json.Marshal(pairs[at+1])
		if err != nil {
			panic(err) // only for types that JSON cannot express
		}
		texts = append(texts, pairs[at].(string), string(value))
	}
	return abci.Event{Type: "dex.v1." + name, Attributes: attributes(texts...)}
}

func attributes(texts ...string) (list []abci.EventAttribute) {
	for at := 0; at < len(texts); at += 2 {
		list = append(list, abci.EventAttribute{Key: texts[at], Value: texts[at+1], Index: true})
	}
	return list
}
