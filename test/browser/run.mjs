// node test/browser/run.mjs [part of a test's name] [FILE ...]: all tests in a browser, or those.
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {runAll} from './harness.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const given = process.argv.slice(2);
const files = given.filter(word => word.endsWith('.mjs')).map(file => path.resolve(file));
const all = fs
    .readdirSync(here)
    .filter(name => name.endsWith('.test.mjs'))
    .sort()
    .map(name => path.join(here, name));
for (const file of files.length ? files : all) await import(file);
process.exit((await runAll(given.find(word => !word.endsWith('.mjs')))) ? 0 : 1);
