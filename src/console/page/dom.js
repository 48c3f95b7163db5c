// Elements without HTML in strings: whatever comes from data becomes a text node, so nothing has to be escaped.

const BOOLEAN = new Set(['disabled', 'checked', 'hidden', 'open', 'readOnly', 'selected', 'multiple', 'autofocus']);

// h('button.primary', {onclick: save, 'aria-label': 'Save'}, 'Save'). Children: nodes, texts, lists; null and false
// are left out.
export function h(tag, props, ...children) {
    const [name, ...classes] = tag.split('.');
    const element = document.createElement(name || 'div');
    if (classes.length) element.className = classes.join(' ');
    if (props && (props instanceof Node || typeof props !== 'object' || Array.isArray(props))) {
        children.unshift(props);
        props = null;
    }
    for (const [key, value] of Object.entries(props ?? {})) set(element, key, value);
    append(element, children);
    return element;
}

const handled = new WeakSet(); // elements with a handler: it knows what it was made for

function set(element, key, value) {
    if (value === null || value === undefined) return;
    if (key.startsWith('on')) listenTo(element, key, value);
    else if (key === 'class') element.className = [element.className, value].filter(Boolean).join(' ');
    else if (key === 'value' || BOOLEAN.has(key)) element[key] = value;
    else if (key === 'dataset') Object.assign(element.dataset, value);
    else if (value !== false) element.setAttribute(key, value === true ? '' : value);
}

function listenTo(element, key, handler) {
    element.addEventListener(key.slice(2), handler);
    handled.add(element);
}

const nodesOf = children =>
    children
        .flat(Infinity)
        .filter(child => child !== null && child !== undefined && child !== false)
        .map(child => (child instanceof Node ? child : document.createTextNode(String(child))));

export function append(element, ...children) {
    element.append(...nodesOf(children));
    return element;
}

export function replace(element, ...children) {
    element.replaceChildren();
    return append(element, children);
}

// As replace, for what is shown anew again and again: what is alike stays and only its words and attributes change, so
// that the focus, a selection and a click that is under way are not lost. What has a handler is made anew, unless it is
// the same element as before: a button of such a place is made once and given as a child itself.
export function renew(element, ...children) {
    const wanted = nodesOf(children),
        stays = new Set(wanted);
    wanted.forEach((one, i) => {
        const old = element.childNodes[i] ?? null;
        if (old === one) return;
        if (!old || stays.has(old) || one.parentNode === element) element.insertBefore(one, old);
        else if (isAlike(old, one)) become(old, one);
        else old.replaceWith(one);
    });
    while (element.childNodes.length > wanted.length) element.lastChild.remove();
    return element;
}
const isAlike = (old, one) =>
    old.nodeName === one.nodeName &&
    ![old, one].some(each => handled.has(each) || /^(input|textarea|select|canvas)$/i.test(each.nodeName));
function become(old, one) {
    if (old.nodeType === Node.TEXT_NODE) {
        if (old.data !== one.data) old.data = one.data;
        return;
    }
    for (const {name} of [...old.attributes]) if (!one.hasAttribute(name)) old.removeAttribute(name);
    for (const {name, value} of one.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    renew(old, [...one.childNodes]);
}

// Changes a text only where it differs: what did not change is not painted again, and a selection stays.
export function text(element, value) {
    const words = String(value ?? '');
    if (element.textContent !== words) element.textContent = words;
    return element;
}

const SVG = 'http://www.w3.org/2000/svg';
export function svg(tag, props = {}, ...children) {
    const [name, ...classes] = tag.split('.');
    const element = document.createElementNS(SVG, name);
    if (classes.length) element.setAttribute('class', classes.join(' '));
    for (const [key, value] of Object.entries(props)) {
        if (key.startsWith('on')) listenTo(element, key, value);
        else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    return append(element, children);
}

let lastId = 0;
export const newId = prefix => `${prefix}-${++lastId}`;

// A colour of style.css by its name ('--accent'), for canvases.
export const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
