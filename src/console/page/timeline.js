// A line of time with a tick for each moment and two handles that step from tick to tick.

import {h, svg, replace} from './dom.js';
import {utc, when} from './format.js';

const TICKS = 600; // drawn at most: more would be one grey bar

// moments: [{time, words, kind}], oldest first; onmove(from, to): numbers of the moments under the handles.
export function timeline({label, onmove}) {
    const ticks = svg('svg.timeline-ticks', {
        'aria-hidden': 'true',
        preserveAspectRatio: 'none',
        viewBox: '0 0 1000 20',
    });
    const handles = ['From', 'To'].map((words, which) =>
        h(
            `button.timeline-handle.timeline-${words.toLowerCase()}`,
            {
                type: 'button',
                role: 'slider',
                'aria-label': `${words}: version`,
                onkeydown: event => {
                    const steps = {
                        ArrowLeft: -1,
                        ArrowDown: -1,
                        ArrowRight: 1,
                        ArrowUp: 1,
                        PageDown: -10,
                        PageUp: 10,
                    };
                    const to =
                        event.key === 'Home'
                            ? 0
                            : event.key === 'End'
                              ? moments.length - 1
                              : at[which] + (steps[event.key] ?? NaN);
                    if (Number.isNaN(to)) return;
                    event.preventDefault();
                    move(which, to);
                },
                onpointerdown: event => {
                    event.preventDefault();
                    handles[which].focus();
                    handles[which].setPointerCapture(event.pointerId);
                },
                onpointermove: event => {
                    if (handles[which].hasPointerCapture(event.pointerId)) move(which, nearest(event.clientX));
                },
            },
            which ? '▲' : '△',
        ),
    );
    const track = h(
        'div.timeline-track',
        {
            onpointerdown: event => {
                if (event.target.closest('button') || !moments.length) return;
                const to = nearest(event.clientX);
                move(Math.abs(to - at[0]) < Math.abs(to - at[1]) ? 0 : 1, to);
            },
        },
        ticks,
        handles,
    );
    const begin = h('span'),
        end = h('span');
    const element = h(
        'div.timeline',
        {role: 'group', 'aria-label': label},
        track,
        h('div.timeline-ends.dim', begin, end),
    );
    let moments = [],
        at = [0, 0];

    const first = () => moments[0].time;
    const span = () => Math.max(1, moments.at(-1).time - first());
    // By time; where all is one moment, one after the other.
    const place = number =>
        moments.at(-1).time === first() ? (number + 0.5) / moments.length : (moments[number].time - first()) / span();
    function nearest(x) {
        const box = track.getBoundingClientRect();
        const wanted = Math.min(1, Math.max(0, (x - box.left) / box.width));
        let best = 0;
        for (let i = 1; i < moments.length; i++)
            if (Math.abs(place(i) - wanted) < Math.abs(place(best) - wanted)) best = i;
        return best;
    }
    function move(which, to) {
        const number = Math.min(moments.length - 1, Math.max(0, to));
        if (number === at[which]) return;
        at[which] = number;
        draw();
        onmove(...at);
    }
    function draw() {
        handles.forEach((handle, which) => {
            const number = at[which],
                moment = moments[number];
            handle.style.left = `${place(number) * 100}%`;
            handle.setAttribute('aria-valuemin', '1');
            handle.setAttribute('aria-valuemax', String(moments.length));
            handle.setAttribute('aria-valuenow', String(number + 1));
            handle.setAttribute('aria-valuetext', `${moment.words}, ${when(moment.time)}`);
            handle.title = `${moment.words} · ${when(moment.time)} · ${utc(moment.time)}`;
        });
    }
    return {
        element,
        update(next, from, to) {
            moments = next;
            at = [from, to];
            const step = Math.max(1, Math.ceil(moments.length / TICKS));
            replace(
                ticks,
                moments
                    .filter((_, i) => i % step === 0 || i === moments.length - 1)
                    .map(moment => {
                        const x = place(moments.indexOf(moment)) * 1000;
                        return svg(`line.timeline-${moment.kind}`, {x1: x, x2: x, y1: 2, y2: 20});
                    }),
            );
            replace(begin, when(first()));
            replace(end, when(moments.at(-1).time));
            draw();
        },
    };
}
