// A job as cells, one for each task, or for each range of tasks of a large job, filled by what is done and failed of
// it. Of a small job the tasks that are missing and failed are asked for; what each range of a large one has comes with
// the job, by RANGES_WANTED in its query. What is running is known of jobs whose tasks the server calls.

import {at, request} from './api.js';
import {h, replace, style, text} from './dom.js';
import {count} from './format.js';
import {errorLine, state} from './parts.js';

const MOST_CELLS = 10000; // a job with more tasks is shown by ranges
const RANGES = 10000;
const PAGE = 256;
const LISTED = 256; // tasks of a cell in words
export const RANGES_WANTED = `ranges=${RANGES}`;

// onopen(cell): its tasks are to be listed, by select().
export function jobPicture(id, signal, onopen) {
    const canvas = h('canvas.job-cells', {
        role: 'img',
        tabindex: '0',
        onclick: () => choose(pointed),
        onkeydown: event => step(event),
    });
    const said = h('p.job-said', {role: 'status'});
    const listed = h('div.job-listed');
    const legend = h(
        'p.dim',
        ['ok done', 'failed failed', 'running running']
            .map(one => one.split(' '))
            .map(([kind, words]) => [state(kind, words), ' ']),
        '□ missing',
    );
    const element = h('div', canvas, legend, said, listed);
    let job = null,
        total = 0,
        called = [], // tasks that are running
        perCell = 1,
        done = [], // of each cell
        failed = [],
        running = new Map(), // cell → how many of its tasks
        isOrdered = true, // a cell stands for certain tasks
        chosen = null, // the cell whose tasks are listed
        told = '', // what was known of it then
        pointed = -1, // the cell under the pointer, or where the arrows went
        side = 10,
        across = 1;

    const sizeOf = i => Math.min(perCell, total - i * perCell);

    function draw() {
        const width = canvas.clientWidth || 600,
            ratio = devicePixelRatio || 1;
        const room = width * 260;
        side = Math.max(4, Math.min(16, Math.floor(Math.sqrt(room / Math.max(1, done.length)))));
        across = Math.max(1, Math.floor(width / side));
        const height = Math.ceil(done.length / across) * side;
        canvas.style.height = `${height}px`;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        const pen = canvas.getContext('2d');
        pen.setTransform(ratio, 0, 0, ratio, 0, 0);
        const colors = {missing: style('--line'), done: style('--ok'), failed: style('--failed')};
        const ground = style('--ground'),
            blue = style('--running');
        const inner = side - (side > 5 ? 2 : 1);
        for (let i = 0; i < done.length; i++) {
            const x = (i % across) * side,
                y = Math.floor(i / across) * side;
            const doneTop = inner - (done[i] / sizeOf(i)) * inner;
            // a failure is seen, however few they are
            const failedTop = failed[i] ? Math.min(doneTop - (failed[i] / sizeOf(i)) * inner, doneTop - 2) : doneTop;
            pen.fillStyle = colors.missing;
            pen.fillRect(x, y, inner, inner);
            pen.fillStyle = colors.done;
            pen.fillRect(x, y + doneTop, inner, inner - doneTop);
            if (running.has(i)) drawRunning(x, y);
            if (!failed[i]) continue;
            pen.fillStyle = colors.failed;
            pen.fillRect(x, y + Math.max(0, failedTop), inner, Math.max(2, doneTop - failedTop));
            if (side <= 5) continue;
            // a shape beside the colour
            pen.strokeStyle = ground;
            pen.beginPath();
            pen.moveTo(x + 1, y + 1);
            pen.lineTo(x + inner - 1, y + inner - 1);
            pen.moveTo(x + inner - 1, y + 1);
            pen.lineTo(x + 1, y + inner - 1);
            pen.stroke();
        }
        // A task is filled, with a triangle where there is room; a range has a frame.
        function drawRunning(x, y) {
            pen.fillStyle = pen.strokeStyle = blue;
            if (perCell > 1) pen.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
            else pen.fillRect(x, y, inner, inner);
            if (perCell > 1 || side <= 5) return;
            pen.fillStyle = ground;
            pen.beginPath();
            pen.moveTo(x + inner * 0.3, y + inner * 0.2);
            pen.lineTo(x + inner * 0.8, y + inner * 0.5);
            pen.lineTo(x + inner * 0.3, y + inner * 0.8);
            pen.fill();
        }
        if (document.activeElement === canvas && done[pointed] !== undefined) {
            pen.strokeStyle = style('--text');
            pen.strokeRect((pointed % across) * side + 0.5, Math.floor(pointed / across) * side + 0.5, inner, inner);
        }
        const words = [`${count(job.done ?? 0)} of ${count(total)} tasks done`, `${count(job.failed ?? 0)} failed`];
        const calls = [...running.values()].reduce((sum, one) => sum + one, 0);
        if (calls) words.push(`${count(calls)} running`);
        canvas.setAttribute('aria-label', words.join(', '));
    }

    // ---- words ----

    function aboutAll() {
        if (job.total === undefined) return 'How many tasks there are is not known yet.';
        if (!isOrdered) return 'The cells tell how many are done, not which.';
        return perCell > 1 ? `Each cell is ${count(perCell)} tasks.` : '';
    }
    function aboutCell(i) {
        const from = Number(job.first ?? 0) + i * perCell;
        if (perCell === 1)
            return `Task ${from}: ${failed[i] ? 'failed' : done[i] ? 'done' : running.has(i) ? 'running' : 'missing'}`;
        const least = done.reduce((sum, one) => sum + one, 0) < Number(job.done ?? 0) || job.exact === false;
        const words = [
            `${count(done[i])} done${least && done[i] + failed[i] < sizeOf(i) ? ' at least' : ''}`,
            failed[i] ? `${count(failed[i])} failed` : '',
            running.has(i) ? `${count(running.get(i))} running` : '',
        ];
        return `Tasks ${count(from)} to ${count(from + sizeOf(i) - 1)}: ${words.filter(Boolean).join(', ')}`;
    }
    const tell = () => text(said, isOrdered && done[pointed] !== undefined ? aboutCell(pointed) : aboutAll());
    canvas.addEventListener('pointermove', event => {
        pointed = Math.floor(event.offsetY / side) * across + Math.floor(event.offsetX / side);
        tell();
    });
    canvas.addEventListener('pointerleave', () => {
        pointed = -1;
        tell();
    });
    // Arrows go from cell to cell, Enter lists its tasks.
    function step(event) {
        const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across};
        if (event.key === 'Enter') choose(pointed);
        else if (event.key === 'Home') pointed = 0;
        else if (event.key === 'End') pointed = done.length - 1;
        else if (event.key in steps) pointed = Math.min(done.length - 1, Math.max(0, pointed + steps[event.key]));
        else return;
        event.preventDefault();
        draw();
        tell();
    }
    const choose = cell => isOrdered && done[cell] !== undefined && onopen(cell);
    // Again where it has changed since.
    function select(cell) {
        chosen = cell;
        const now = cell === null ? '' : `${cell} ${done[cell]} ${failed[cell]} ${running.get(cell)}`;
        if (now === told || !job) return;
        told = now;
        if (cell === null) replace(listed);
        else list(cell).catch(error => replace(listed, errorLine(error)));
    }
    // The tasks of a cell with what is known of each: of its range, those that are missing and failed are asked for.
    async function list(cell) {
        if (!isOrdered || done[cell] === undefined) return;
        const first = Number(job.first ?? 0),
            from = first + cell * perCell,
            size = sizeOf(cell);
        const ask = async name => {
            const page = Math.floor((cell * perCell) / PAGE); // lists go on by pages of so many numbers
            const query = new URLSearchParams({limit: size, ...(page ? {after: page} : {})});
            const reply = await request('GET', `${at`/v1/jobs/${id}`}/${name}?${query}`, {signal});
            return reply[name];
        };
        const [missing, failures] = await Promise.all([
            done[cell] + failed[cell] < size ? ask('missing') : [],
            failed[cell] ? ask('failures') : [],
        ]);
        const now = new Set(called);
        const isMissing = new Set(missing.map(Number)),
            reasons = new Map(failures.map(one => [Number(one.task), one.reason ?? 'no reason']));
        const words = task =>
            reasons.has(task)
                ? state('failed', `${task} failed: ${reasons.get(task)}`)
                : !isMissing.has(task)
                  ? state('ok', `${task} done`)
                  : now.has(task)
                    ? state('running', `${task} running`)
                    : state('waiting', `${task} missing`);
        replace(
            listed,
            h('h3', size === 1 ? `Task ${from}` : `Tasks ${count(from)} to ${count(from + size - 1)}`),
            h(
                'ul',
                Array.from({length: Math.min(size, LISTED)}, (_, i) => h('li', words(from + i))),
            ),
            size > LISTED ? h('p.dim', `and ${count(size - LISTED)} more`) : null,
        );
    }

    // ---- what is known ----

    function begin(tasks) {
        perCell = tasks;
        const cells = Math.ceil(total / perCell);
        done = new Array(cells).fill(0);
        failed = new Array(cells).fill(0);
    }
    // No numbers tell where: what is done first, what failed last.
    function fillByCounts() {
        let left = Number(job.done ?? 0),
            faults = Number(job.failed ?? 0);
        begin(total <= MOST_CELLS ? 1 : Math.ceil(total / RANGES));
        isOrdered = false;
        for (let i = done.length - 1; i >= 0; i--) faults -= failed[i] = Math.min(sizeOf(i), faults);
        for (let i = 0; i < done.length; i++) left -= done[i] = Math.min(sizeOf(i) - failed[i], left);
    }
    function fillByTasks(missing, failures) {
        const first = Number(job.first ?? 0);
        begin(1);
        done.fill(1);
        for (const task of missing) done[task - first] = 0;
        for (const {task} of failures) {
            done[task - first] = 0;
            failed[task - first] = 1;
        }
    }
    function fillByRanges(ranges) {
        begin(ranges.tasks);
        done = ranges.done;
        failed = ranges.failed;
    }
    const every = name => request('GET', `${at`/v1/jobs/${id}`}/${name}?limit=${MOST_CELLS}`, {signal});

    // calls: the tasks that are running. Answers {done, failures}, where it has asked for lists: exactly then.
    async function update(now, calls) {
        let lists = null;
        if (now.total <= MOST_CELLS && now.done !== now.total) {
            const [{missing}, {failures}] = await Promise.all([
                every('missing'),
                Number(now.failed) ? every('failures') : {failures: []},
            ]);
            lists = {missing, failures};
        }
        total = Number(now.total ?? 0);
        const exact = lists && {...lists, done: total - lists.missing.length - lists.failures.length};
        job = exact ? {...now, done: exact.done, exact: true} : now;
        isOrdered = true;
        const isNamed = lists && [...lists.missing, ...lists.failures.map(one => one.task)].some(isName);
        if (lists && !isNamed) fillByTasks(lists.missing, lists.failures);
        else if (!lists && job.done === job.total && total <= MOST_CELLS) fillByTasks([], []);
        else if (!lists && job.ranges) fillByRanges(job.ranges);
        else fillByCounts();
        called = calls.filter(task => !isName(task)).map(Number);
        running = new Map();
        for (const task of isOrdered ? called : []) {
            const cell = Math.floor((task - Number(job.first ?? 0)) / perCell);
            if (done[cell] !== undefined) running.set(cell, (running.get(cell) ?? 0) + 1);
        }
        draw();
        tell();
        select(chosen);
        return exact;
    }
    return {element, update, select};
}

const isName = task => typeof task === 'string';
