// The picture of triggers: sources, filters, functions; the thickness of a line is its rate, its colour the state, and
// the lag stands on it.

import {renew, svg} from './dom.js';
import {duration, short} from './format.js';
import {href} from './route.js';

const ROW = 34;
const TOP = 26;
const WIDTH = 900;
const BOX = 210;
const SHAPES = {ok: '●', running: '▶', waiting: '○', failed: '✕'};

const cut = (words, length) => (words.length > length ? words.slice(0, length - 1) + '…' : words);

// rows: [{key, source, sourceHref, filter, target, targetHref, kind, words, lag (ms, null: unknown), rate (a second)}]
export function triggerMap() {
    const element = svg('svg.triggers-map', {role: 'group', 'aria-label': 'What starts what'});
    let last = '';

    function box(x, y, words, target, title) {
        const link = svg('a', target ? {href: target} : {});
        link.append(
            svg('title', {}, title ?? words),
            svg('rect', {x, y: y - 11, width: BOX, height: 22, rx: 4}),
            svg('text', {x: x + 8, y: y + 4}, cut(words, 26)),
        );
        return link;
    }
    const curve = (x1, y1, x2, y2) => `M${x1},${y1} C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}`;

    return {
        element,
        update(rows, selected) {
            const now = JSON.stringify([rows, selected]);
            if (now === last) return; // so that nothing under the pointer is made anew
            last = now;
            // A source stands beside the first of its lines: rows come in the order of sources.
            const sources = new Map();
            rows.forEach((row, i) => {
                if (!sources.has(row.source)) sources.set(row.source, TOP + (i + 0.5) * ROW);
            });
            const names = [...new Set(rows.map(row => row.target))];
            const targets = new Map(
                names.map((name, i) => [name, TOP + ((i + 0.5) * rows.length * ROW) / names.length]),
            );
            const x = [0, (WIDTH - BOX) / 2, WIDTH - BOX];
            element.setAttribute('viewBox', `0 0 ${WIDTH} ${TOP + rows.length * ROW + 4}`);
            const lines = [],
                boxes = [];
            rows.forEach((row, i) => {
                const y = TOP + (i + 0.5) * ROW,
                    width = 1.5 + Math.min(7, Math.log2(1 + row.rate * 4));
                const props = {'stroke-width': width.toFixed(1)};
                const chosen = row.key === selected ? '.chosen' : '';
                lines.push(
                    svg(`path.${row.kind}${chosen}`, {
                        ...props,
                        d: curve(x[0] + BOX, sources.get(row.source), x[1], y),
                    }),
                    svg(`path.${row.kind}${chosen}`, {
                        ...props,
                        d: curve(x[1] + BOX, y, x[2], targets.get(row.target)),
                    }),
                );
                boxes.push(
                    box(
                        x[1],
                        y,
                        row.filter || 'everything',
                        href(['triggers', row.key]),
                        `${row.source} → ${row.target}: ${row.words}`,
                    ),
                );
                const lag = row.lag === null ? '' : row.lag ? ` ${duration(row.lag)}` : ' 0 s';
                const rate = row.rate ? ` · ${short(row.rate)}/s` : '';
                boxes.push(
                    svg(`text.lag.${row.kind}`, {x: x[1] + BOX + 8, y: y - 5}, `${SHAPES[row.kind]}${lag}${rate}`),
                );
            });
            for (const [name, y] of sources)
                boxes.push(box(x[0], y, name, rows.find(row => row.source === name).sourceHref));
            for (const [name, y] of targets)
                boxes.push(box(x[2], y, name, rows.find(row => row.target === name).targetHref));
            const heads = ['Changes of', 'that match', 'call'].map((words, i) =>
                svg('text.head', {x: x[i], y: 12}, words),
            );
            renew(element, heads, lines, boxes);
        },
    };
}
