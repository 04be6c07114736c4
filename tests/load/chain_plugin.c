/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The object that frtest-chain opens by dlopen(). Its functions call each other by its PLT. */

#include "chain.h"

uint64_t chain_plugin_inner(uint64_t x, uint64_t (*leaf)(uint64_t x));
uint64_t chain_plugin_enter(uint64_t x, uint64_t (*leaf)(uint64_t x));
uint64_t chain_plugin_nothing(uint64_t x);
uint64_t chain_plugin_lazy(uint64_t x);

CHAIN_FRAME uint64_t chain_plugin_inner(uint64_t x, uint64_t (*leaf)(uint64_t x))
{
	return leaf(x + 1) + 1;
}

CHAIN_FRAME uint64_t chain_plugin_enter(uint64_t x, uint64_t (*leaf)(uint64_t x))
{
	return chain_plugin_inner(x + 1, leaf) + 1;
}

CHAIN_FRAME uint64_t chain_plugin_nothing(uint64_t x)
{
	__asm__ volatile("");
	return x + 1;
}

CHAIN_FRAME uint64_t chain_plugin_lazy(uint64_t x)
{
	return chain_plugin_nothing(x) + 1;
}
