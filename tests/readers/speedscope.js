// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a file by the importer of speedscope, and prints what it found as JSON:
 *
 *     node speedscope.js NODE_MODULES FILE
 *
 *     [{"name": …, "unit": …, "samples": number, "weight": total, "stacks": [[outermost, …, innermost], weight]…}, …]
 *
 * The package has one script for browsers, which has all of its importers in it, and an object with their names. So
 * the script runs here without a browser, until it wants to draw, and this object is taken out of it.
 */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

// Stands for all objects of a browser: has any member, and can be called.
const anything = new Proxy(function () {}, {
	get: (_, name) => name === Symbol.toPrimitive ? () => "" : name === Symbol.iterator ? function* () {} : anything,
	set: () => true, apply: () => anything, construct: () => anything});

function loadImporters(modules) {
	const folder = path.join(modules, "speedscope/dist/release");
	const name = fs.readdirSync(folder).find((file) => /^speedscope-\w+\.js$/.test(file));
	const script = fs.readFileSync(path.join(folder, name), "utf8");
	const pattern = /([\w$]+)=\{\};(?=[\w$]+\(\1,\{(?:\w+:\(\)=>[\w$]+,)*importProfilesFromArrayBuffer:)/;
	if (!pattern.test(script))
		throw new Error(`${name} does not have its importers where this program looks for them`);
	const world = {console: {...console, log() {}, time() {}, timeEnd() {}}, TextDecoder, TextEncoder, performance,
		location: {hash: "", protocol: "file:"}, document: anything, navigator: anything, localStorage: anything};
	world.window = world.self = world;
	vm.createContext(world);
	try {
		vm.runInContext(script.replace(pattern, "$1=globalThis.importers={};"), world);
	} catch (error) {
		if (!world.importers) // otherwise it failed where it draws
			throw error;
	}
	return world.importers;
}

// A profile calls back for each change of the stack, with the weight up to it.
function sumStacks(profile) {
	const stack = [], sums = new Map();
	let last = 0;
	const add = (value) => {
		if (value > last) {
			const key = JSON.stringify(stack);
			sums.set(key, (sums.get(key) || 0) + value - last);
		}
		last = value;
	};
	profile.forEachCall((node, value) => { add(value); stack.push(node.frame.name); },
		(node, value) => { add(value); stack.pop(); });
	add(profile.getTotalWeight()); // samples without a stack
	return [...sums].map(([key, weight]) => [JSON.parse(key), weight]);
}

async function main(modules, file) {
	const importers = loadImporters(modules);
	await new Promise((done) => setTimeout(done, 0)); // the script fills the object in a task of its own
	const data = fs.readFileSync(file);
	const group = await importers.importProfilesFromArrayBuffer(path.basename(file), new Uint8Array(data).buffer);
	if (!group)
		throw new Error(`speedscope does not know the format of ${file}`);
	const found = group.profiles.map((p) => ({name: p.getName(), unit: p.getWeightUnit(), weight: p.getTotalWeight(),
		samples: p.samples ? p.samples.length : 0, stacks: sumStacks(p)}));
	process.stdout.write(JSON.stringify(found));
}

main(...process.argv.slice(2)).catch((error) => { console.error(error); process.exit(1); });
