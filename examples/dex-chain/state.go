package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"

	abci "github.com/cometbft/cometbft/abci/types"
)

// A command is the whole transaction, as JSON; exactly one of its fields besides the memo is set.
type command struct {
	Memo   string    `json:"memo,omitempty"` // makes two equal commands two transactions
	Asset  *asset    `json:"asset,omitempty"`
	Market *market   `json:"market,omitempty"`
	Move   *transfer `json:"transfer,omitempty"`
	Fill   *fill     `json:"fill,omitempty"`
}

type asset struct {
	Denom    string `json:"denom"`
	Decimals uint32 `json:"decimals"`
}

// A spot market: its prices are smallest units of the quote for one smallest unit of the base.
type market struct {
	Symbol string `json:"symbol"`
	Base   string `json:"base"`
	Quote  string `json:"quote"`
}

// A transfer from `bridge` is a deposit: that account may be overdrawn.
type transfer struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Denom  string `json:"denom"`
	Amount int64  `json:"amount,string"`
}

// A fill is a pair of orders that a matcher outside of the chain found.
type fill struct {
	Market string `json:"market"`
	Buyer  string `json:"buyer"`
	Seller string `json:"seller"`
	Taker  string `json:"taker"` // "buyer" or "seller"
	Price  int64  `json:"price,string"`
	Size   int64  `json:"size,string"`
}

type position struct{ Volume, Cost, Realised int64 }

// The state is rebuilt by replay after a restart. Maps are written with sorted keys, so its hash is deterministic.
type state struct {
	Height    int64
	Assets    map[string]asset
	Markets   map[string]market
	Balances  map[string]*big.Int  // "owner/denom"
	Positions map[string]*position // "owner/market"
	Fills     uint64
}

func newState() *state {
	return &state{
		Assets: map[string]asset{}, Markets: map[string]market{},
		Balances: map[string]*big.Int{}, Positions: map[string]*position{},
	}
}

func (s *state) hash() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // only for types that JSON cannot express
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// parse checks what can be checked without the state.
func parse(tx []byte) (c command, err error) {
	if err = json.Unmarshal(tx, &c); err != nil {
		return c, err
	}
	switch {
	case c.Asset != nil && c.Asset.Denom != "":
	case c.Market != nil && c.Market.Symbol != "":
	case c.Move != nil && c.Move.Amount > 0 && c.Move.From != c.Move.To && c.Move.From != "" && c.Move.To != "":
	case c.Fill != nil && c.Fill.Price > 0 && c.Fill.Price < 1e9 && c.Fill.Size > 0 && c.Fill.Size < 1e9 &&
		c.Fill.Buyer != c.Fill.Seller && c.Fill.Buyer != "" && c.Fill.Seller != "" &&
		(c.Fill.Taker == "buyer" || c.Fill.Taker == "seller"):
	default:
		return c, fmt.Errorf("no command, or a value out of range")
	}
	return c, nil
}

// apply executes a command and returns its events. An error leaves the state as it was.
func (s *state) apply(c command) ([]abci.Event, error) {
	switch {
	case c.Asset != nil:
		if _, known := s.Assets[c.Asset.Denom]; known {
			return nil, fmt.Errorf("asset %s exists", c.Asset.Denom)
		}
		s.Assets[c.Asset.Denom] = *c.Asset
		return []abci.Event{typed("EventAssetListed", "denom", c.Asset.Denom, "decimals", c.Asset.Decimals)}, nil
	case c.Market != nil:
		base, hasBase := s.Assets[c.Market.Base]
		quote, hasQuote := s.Assets[c.Market.Quote]
		if _, known := s.Markets[c.Market.Symbol]; known || !hasBase || !hasQuote || base == quote {
			return nil, fmt.Errorf("market %s exists, or has not two assets that exist", c.Market.Symbol)
		}
		s.Markets[c.Market.Symbol] = *c.Market
		return []abci.Event{typed("EventMarketCreated", "symbol", c.Market.Symbol, "base", base.Denom, "quote",
			quote.Denom, "base_decimals", base.Decimals, "quote_decimals", quote.Decimals)}, nil
	case c.Move != nil:
		return s.move("send", c.Move.From, c.Move.To, c.Move.Denom, c.Move.Amount)
	default:
		return s.fill(c.Fill)
	}
}

func (s *state) has(owner, denom string, amount int64) bool {
	balance := s.Balances[owner+"/"+denom]
	return owner == "bridge" || balance != nil && balance.Cmp(big.NewInt(amount)) >= 0
}

func (s *state) move(reason, from, to, denom string, amount int64) ([]abci.Event, error) {
	if _, known := s.Assets[denom]; !known {
		return nil, fmt.Errorf("no asset %s", denom)
	}
	if !s.has(from, denom, amount) {
		return nil, fmt.Errorf("%s has less than %d %s", from, amount, denom)
	}
	var events []abci.Event
	change := func(owner string, by int64) string {
		key := owner + "/" + denom
		if s.Balances[key] == nil {
			s.Balances[key] = new(big.Int)
			events = append(events, typed("EventAccountOpened", "owner", owner, "denom", denom))
		}
		s.Balances[key].Add(s.Balances[key], big.NewInt(by))
		return s.Balances[key].String()
	}
	left, reached := change(from, -amount), change(to, amount)
	return append(events,
		typed("EventTransfer", "from", from, "to", to, "denom", denom, "amount", strconv.FormatInt(amount, 10),
			"from_balance", left, "to_balance", reached, "reason", reason),
		typed("EventBalance", "owner", from, "denom", denom, "balance", left),
		typed("EventBalance", "owner", to, "denom", denom, "balance", reached)), nil
}

func (s *state) fill(f *fill) ([]abci.Event, error) {
	m, known := s.Markets[f.Market]
	cost := f.Price * f.Size
	if !known || !s.has(f.Buyer, m.Quote, cost) || !s.has(f.Seller, m.Base, f.Size) {
		return nil, fmt.Errorf("no market %s, or not enough for %d at %d", f.Market, f.Size, f.Price)
	}
	s.Fills++
	events := []abci.Event{typed("EventFill", "id", strconv.FormatUint(s.Fills, 10), "market", f.Market, "buyer", f.Buyer,
		"seller", f.Seller, "taker", f.Taker, "price", strconv.FormatInt(f.Price, 10), "size", strconv.FormatInt(f.Size, 10))}
	paid, _ := s.move("fill", f.Buyer, f.Seller, m.Quote, cost)
	delivered, _ := s.move("fill", f.Seller, f.Buyer, m.Base, f.Size)
	events = append(append(events, paid...), delivered...)
	for _, side := range []struct {
		owner string
		size  int64
	}{{f.Buyer, f.Size}, {f.Seller, -f.Size}} {
		key := side.owner + "/" + f.Market
		if s.Positions[key] == nil {
			s.Positions[key] = &position{}
		}
		p := s.Positions[key]
		p.trade(side.size, f.Price)
		entry := int64(0)
		if p.Volume != 0 {
			entry = p.Cost / p.Volume
		}
		events = append(events, typed("EventPosition", "owner", side.owner, "market", f.Market, "volume",
			strconv.FormatInt(p.Volume, 10), "entry_price", strconv.FormatInt(entry, 10), "realised",
			strconv.FormatInt(p.Realised, 10)))
	}
	return events, nil
}

// trade adds to the position, or closes part of it at its average entry price.
func (p *position) trade(size, price int64) {
	if closing := p.Volume; (closing > 0) != (size > 0) && closing != 0 {
		closed := min(abs(size), abs(closing))
		if size > 0 {
			closed = -closed
		}
		share := p.Cost * closed / p.Volume
		p.Realised += price*closed - share
		p.Cost -= share
		p.Volume -= closed
		size += closed
	}
	p.Volume += size
	p.Cost += size * price
}

func abs(n int64) int64 { return max(n, -n) }
