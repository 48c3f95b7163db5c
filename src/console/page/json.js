// JSON whose numbers stay what they were: one that a double does not hold is kept as its text. A long number goes
// through JSON.parse and JSON.stringify as a text that begins with MARK, and a text that begins so by itself gets one
// more of them. So it is exact in every browser, also where JSON.parse does not tell a number's source.

const SAFE_DIGITS = 15; // as many decimal digits as a double always keeps
const MARK = '\ue000'; // of the letters that nobody assigns
const MAY_BE_LONG = /[\d.]{16}/;
// A text, whether it is a member's name, or a number.
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\s*:)/g;

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
        hasExact = true;
        return this;
    }
}
let hasExact = false; // in what is printed just now

// Sign, place of the first digit before the point, and the digits from there on.
function shapeOf(text) {
    const [, minus, whole, part = '', power = '0'] = /^(-?)(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?$/.exec(text) ?? [, '', ''];
    const all = whole + part,
        first = all.search(/[1-9]/);
    if (first < 0) return {sign: 0, place: 0, digits: ''};
    const digits = all.slice(first).replace(/0+$/, '');
    return {sign: minus ? -1 : 1, place: whole.length - first + Number(power), digits};
}
// The order of two numbers that are texts, by all their digits.
export function compareNumbers(a, b) {
    const [one, other] = [shapeOf(a), shapeOf(b)];
    if (one.sign !== other.sign) return one.sign - other.sign;
    const order = one.place - other.place || (one.digits < other.digits ? -1 : one.digits > other.digits ? 1 : 0);
    return one.sign * order;
}

const digits = source =>
    source
        .replace(/[eE].*$/, '')
        .replace(/[-.]/g, '')
        .replace(/^0+/, '').length;
const isMarked = value => typeof value === 'string' && value.startsWith(MARK);

export function parse(source) {
    if (!MAY_BE_LONG.test(source)) return JSON.parse(source);
    const marked = source.replace(TOKENS, (token, words, colon) => {
        if (colon) return token;
        if (!words) return digits(token) > SAFE_DIGITS ? `"${MARK}${token}"` : token;
        const mayBegin = words[1] === '\\' || words[1] === MARK;
        return mayBegin && isMarked(JSON.parse(words)) ? `"${MARK}${words.slice(1)}` : token;
    });
    return JSON.parse(marked, (name, value) => {
        if (!isMarked(value)) return value;
        return value[1] === MARK ? value.slice(1) : new Exact(value.slice(1));
    });
}

export function print(value, indent = 2) {
    hasExact = false;
    const printed = JSON.stringify(value, null, indent);
    if (!hasExact) return printed;
    const marked = JSON.stringify(
        value,
        (name, one) => (one instanceof Exact || isMarked(one) ? `${MARK}${one}` : one),
        indent,
    );
    return marked.replace(TOKENS, (token, words, colon) => {
        if (!words || colon || words[1] !== MARK) return token;
        return words[2] === MARK ? `"${words.slice(2)}` : words.slice(2, -1);
    });
}
