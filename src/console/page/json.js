// JSON whose numbers stay what they were: one that a double does not hold is kept as its text.

const SAFE_DIGITS = 15; // as many decimal digits as a double always keeps

export class Exact {
    constructor(text) {
        this.text = text;
    }
    toString() {
        return this.text;
    }
    valueOf() {
        return Number(this.text);
    }
    toJSON() {
        return JSON.rawJSON(this.text);
    }
}

const digits = source =>
    source
        .replace(/[eE].*$/, '')
        .replace(/[-.]/g, '')
        .replace(/^0+/, '').length;

export function parse(source) {
    return JSON.parse(source, (key, value, context) =>
        typeof value === 'number' && context && digits(context.source) > SAFE_DIGITS
            ? new Exact(context.source)
            : value,
    );
}

export const print = (value, indent = 2) => JSON.stringify(value, null, indent);
