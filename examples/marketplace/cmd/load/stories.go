package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// fields are the body of a request.
type fields map[string]any

// chance is true in so many of a hundred cases.
func (c *client) chance(percent int) bool { return c.random.IntN(100) < percent }

// store is one of the client's stores. It opens some first.
func (c *client) store() string { return c.stores[c.random.IntN(len(c.stores))] }

// story lives one story: most are of orders.
func (c *client) story(ctx context.Context) error {
	for len(c.stores) < 4 {
		opened, err := c.post(ctx, "/stores", fields{"name": fmt.Sprintf("Store %d", len(c.stores)+1)})
		if err != nil {
			return err
		}
		c.stores = append(c.stores, opened.ID)
	}
	switch dice := c.random.IntN(100); {
	case dice < 55:
		return c.buy(ctx)
	case dice < 80:
		return c.comply(ctx)
	case dice < 90:
		return c.advertise(ctx)
	default:
		_, err := c.post(ctx, "/media", fields{
			"storeId": c.store(), "kind": "photo", "contentType": "image/jpeg", "bytes": 1 + c.random.IntN(5_000_000),
		})
		return err
	}
}

// buy is the life of an order: most are delivered and paid for, some are canceled, and some nobody accepts.
func (c *client) buy(ctx context.Context) error {
	lines := make([]fields, 1+c.random.IntN(3))
	for i := range lines {
		lines[i] = fields{
			"productId": fmt.Sprintf("product-%d", c.random.IntN(1000)), "quantity": 1 + c.random.IntN(5),
			"unitPriceCents": 100 + c.random.IntN(10_000),
		}
	}
	placed, err := c.post(ctx, "/orders", fields{
		"buyerStoreId": c.store(), "vendorStoreId": c.store(), "currency": "EUR", "lines": lines,
	})
	if err != nil {
		return err
	}
	c.counts.orders.Add(1)
	order := "/orders/" + placed.ID
	if c.chance(10) {
		return c.each(ctx, order+"/expire")
	}
	if err := c.each(ctx, order+"/accept"); err != nil {
		return err
	}
	if c.chance(15) {
		_, err := c.post(ctx, order+"/cancel", fields{"reason": "out of stock"})
		return err
	}
	for _, line := range placed.LineIDs {
		if err := c.each(ctx, order+"/lines/"+line+"/pack"); err != nil {
			return err
		}
	}
	if err := c.each(ctx, order+"/ship", order+"/deliver"); err != nil {
		return err
	}
	method := "card"
	if c.chance(30) {
		method = "cash"
	}
	if _, err := c.post(ctx, order+"/payments", fields{"method": method}); err != nil {
		return err
	}
	return c.each(ctx, order+"/payouts")
}

// comply is the life of a licence: a third is rejected first.
func (c *client) comply(ctx context.Context) error {
	submitted, err := c.post(ctx, "/licenses", fields{
		"storeId": c.store(), "number": fmt.Sprintf("L-%06d", c.random.IntN(1_000_000)),
	})
	if err != nil {
		return err
	}
	license := "/licenses/" + submitted.ID
	if c.chance(33) {
		if _, err := c.post(ctx, license+"/reject", fields{"reason": "the picture is blurred"}); err != nil {
			return err
		}
		if err := c.each(ctx, license+"/resubmit"); err != nil {
			return err
		}
	}
	return c.each(ctx, license+"/verify")
}

// advertise is the life of an ad.
func (c *client) advertise(ctx context.Context) error {
	created, err := c.post(ctx, "/ads", fields{"storeId": c.store(), "title": "Fresh bread", "dailyBudgetCents": 500})
	if err != nil {
		return err
	}
	ad := "/ads/" + created.ID
	if _, err := c.send(ctx, http.MethodPatch, ad, fields{
		"title": "Fresh bread, still warm", "dailyBudgetCents": 700,
	}); err != nil {
		return err
	}
	if err := c.each(ctx, ad+"/pause", ad+"/activate"); err != nil {
		return err
	}
	seen := c.random.IntN(1000)
	figures := fields{
		"day": time.Now().UTC().Format(time.DateOnly), "impressions": seen, "clicks": seen / 20, "spentCents": seen,
	}
	if _, err := c.post(ctx, ad+"/rollups", figures); err != nil {
		return err
	}
	return c.each(ctx, ad+"/expire")
}
