// Runs a function's handler in Node.js: asks Lambda's Runtime API for events, calls the handler, answers.
//
// It behaves as Lambda's own runtime does towards handlers: files and exports named by _HANDLER, promises, callbacks
// and streams, the context object, console lines, errors and their names. It speaks HTTP/1.1 itself over one
// connection that stays open, because an event should cost microseconds. With AWS_LAMBDA_MAX_CONCURRENCY there are as
// many connections, each of which has at most one event at a time.
//
// An answer that waits for the event loop to become empty is sent from 'beforeExit': while a handler runs, our own
// sockets do not keep the process alive.
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire, Module } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import util from 'node:util';

const NODE_MAJOR_MIN = 16;
const API = '/2018-06-01/runtime';
const SYNTAX_CHECK_MS = 10000;
const EARLY_MS = 100; // for a load to fail by itself
const EXIT_UNHANDLED_REJECTION = 128;
const EXIT_UNCAUGHT_EXCEPTION = 129;
const STREAMING = Symbol.for('aws.lambda.runtime.handler.streaming');
const PRELUDE_TYPE = 'application/vnd.awslambda.http-integration-response';
const CRLF = '\r\n';

const env = process.env;
const taskRoot = env.LAMBDA_TASK_ROOT || process.cwd();
const sharedModules = env.QUIPU_NODE_MODULES; // packages that functions need not bring
const layers = env.QUIPU_LAYERS; // the folder of the function's layers, merged
const concurrency = Math.max(1, Number.parseInt(env.AWS_LAMBDA_MAX_CONCURRENCY || '1', 10) || 1);
const current = new AsyncLocalStorage(); // the invocation that code belongs to, where there are several at a time
let onlyInvocation; // where there is one at a time
let early; // what ends the process for a promise that was rejected while the handler was loaded
let isRunning = false; // the handler is loaded: errors are of invocations, not of the start

const invocationNow = () => (concurrency > 1 ? current.getStore() : onlyInvocation);

// ---- HTTP ----

// One connection to the Runtime API. Requests go one after the other.
class Connection {
  constructor(address) {
    const colon = address.lastIndexOf(':');
    this.host = address.slice(0, colon);
    this.port = Number(address.slice(colon + 1));
    this.address = address;
    this.socket = null;
    this.pending = null;
  }

  open() {
    if (this.socket) return this.socket;
    const socket = net.connect({ host: this.host, port: this.port });
    socket.setNoDelay(true);
    this.chunks = [];
    this.length = 0;
    this.needed = 0;
    socket.on('data', (chunk) => this.take(chunk));
    socket.on('error', (error) => this.close(socket, error));
    socket.on('close', () => this.close(socket, new Error('the Runtime API closed the connection')));
    this.socket = socket;
    return socket;
  }

  close(socket, error) {
    if (this.socket !== socket) return;
    this.socket = null;
    socket.destroy();
    const pending = this.pending;
    this.pending = null;
    if (pending) pending.reject(error);
  }

  ref() {
    if (this.socket) this.socket.ref();
  }

  unref() {
    if (this.socket) this.socket.unref();
  }

  head(method, target, headers) {
    let text = `${method} ${API}${target} HTTP/1.1${CRLF}Host: ${this.address}${CRLF}`;
    for (const name in headers) text += `${name}: ${headers[name]}${CRLF}`;
    return text + CRLF;
  }

  // The reply to what was written, or is about to be: {status, headers, body}.
  reply() {
    return new Promise((resolve, reject) => {
      this.pending = { resolve, reject };
    });
  }

  get(target) {
    this.open().write(this.head('GET', target, {}), 'latin1');
    this.ref();
    return this.reply();
  }

  post(target, headers, text) {
    const body = Buffer.from(text, 'utf8');
    const head = this.head('POST', target, { ...headers, 'Content-Length': body.length });
    this.open().write(body.length < 65536 ? Buffer.concat([Buffer.from(head, 'latin1'), body]) : head);
    if (body.length >= 65536) this.socket.write(body);
    this.ref();
    return this.reply();
  }

  take(chunk) {
    this.chunks.push(chunk);
    this.length += chunk.length;
    if (this.length < this.needed) return; // the whole length is known
    const bytes = this.chunks.length === 1 ? chunk : Buffer.concat(this.chunks, this.length);
    this.chunks = [bytes];
    const reply = this.parse(bytes);
    if (!reply || !this.pending) return;
    this.chunks = [];
    this.length = this.needed = 0;
    const pending = this.pending;
    this.pending = null;
    if (reply.headers.connection === 'close') this.close(this.socket, null);
    pending.resolve(reply);
  }

  parse(bytes) {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return null;
    const lines = bytes.latin1Slice(0, end).split(CRLF);
    const headers = {};
    for (let i = 1; i < lines.length; i++) {
      const colon = lines[i].indexOf(':');
      headers[lines[i].slice(0, colon).toLowerCase()] = lines[i].slice(colon + 1).trim();
    }
    const reply = { status: Number(lines[0].split(' ')[1]), headers, body: null };
    if (headers['transfer-encoding'] === 'chunked') {
      reply.body = unchunk(bytes, end + 4);
      return reply.body === null ? null : reply;
    }
    const length = Number(headers['content-length'] || 0);
    this.needed = end + 4 + length;
    if (bytes.length < this.needed) return null;
    reply.body = bytes.utf8Slice(end + 4, this.needed);
    return reply;
  }
}

// The text of a chunked body that is whole; null when it is not yet.
function unchunk(bytes, at) {
  const parts = [];
  for (;;) {
    const line = bytes.indexOf(CRLF, at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.latin1Slice(at, line), 16);
    at = line + 2;
    if (size === 0) return bytes.indexOf(CRLF, at) < 0 ? null : Buffer.concat(parts).toString('utf8');
    if (bytes.length < at + size + 2) return null;
    parts.push(bytes.subarray(at, at + size));
    at += size + 2;
  }
}

// ---- errors ----

class RuntimeError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

const isError = (value) => value instanceof Error || (value && util.types.isNativeError(value));

function describe(error) {
  try {
    if (!isError(error) && !(error && error.name && error.message && error.stack))
      return { errorType: typeof error, errorMessage: String(error), trace: [] };
    return { errorType: error.name, errorMessage: error.message, trace: String(error.stack || '').split('\n') };
  } catch {
    return { errorType: 'handled', errorMessage: 'callback called with Error argument, but there was a problem while ' +
      'retrieving one or more of its message, name, and stack', trace: [] };
  }
}

// As the log shows it: with whatever members the error has besides.
function describeForLog(error) {
  const { errorType, errorMessage, trace } = describe(error);
  try {
    return JSON.stringify({ errorType, errorMessage, ...(isError(error) ? error : {}), name: undefined, stack: trace });
  } catch {
    return JSON.stringify({ errorType, errorMessage, stack: trace });
  }
}

const headerText = (text) => String(text).replace(/[^\x20-\x7e]/g, '?').slice(0, 256);

function postError(connection, target, error) {
  const body = describe(error);
  const headers = {
    'Content-Type': 'application/json',
    'Lambda-Runtime-Function-Error-Type': headerText(body.errorType),
  };
  return connection.post(target, headers, JSON.stringify(body));
}

// ---- console ----

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];
const METHODS = { trace: 'TRACE', debug: 'DEBUG', info: 'INFO', log: 'INFO', warn: 'WARN', error: 'ERROR',
  fatal: 'FATAL' };
const logsJson = (env.AWS_LAMBDA_LOG_FORMAT || '').toUpperCase() === 'JSON';
const levelMin = Math.max(0, LEVELS.indexOf((env.AWS_LAMBDA_LOG_LEVEL || '').toUpperCase()));

const errorMembers = (error) => ({
  errorType: error instanceof RuntimeError ? error.name : error.constructor?.name ?? 'UnknownError',
  errorMessage: error.message,
  stackTrace: typeof error.stack === 'string' ? error.stack.split('\n') : [],
});
const errorsAsObjects = (_, value) => (value instanceof Error ? { ...errorMembers(value), ...value } : value);

const textLine = (time, id, level, values) => `${time}\t${id}\t${level}\t${util.format(...values)}`;

// One value stays what it is; several become a text, and the first error among them is told besides.
function jsonLine(timestamp, requestId, level, values) {
  const line = { timestamp, level, requestId };
  if (values.length === 1) {
    try {
      return JSON.stringify({ ...line, message: values[0] }, errorsAsObjects);
    } catch {
      return JSON.stringify({ ...line, message: util.format(values[0]) });
    }
  }
  const error = values.find((value) => value instanceof Error);
  return JSON.stringify({ ...line, message: util.format(...values), ...(error ? errorMembers(error) : {}) });
}

function patchConsole() {
  const form = logsJson ? jsonLine : textLine;
  const print = (level) => (...values) => {
    process.stdout.write(`${form(new Date().toISOString(), invocationNow()?.id, level, values)}\n`);
  };
  for (const [method, level] of Object.entries(METHODS))
    console[method] = LEVELS.indexOf(level) >= levelMin ? print(level) : () => {};
}

// An error that ends an invocation or the process.
function logError(words, error) {
  if (logsJson) console.error(isError(error) ? error : describe(error));
  else console.error(`${words} \t${describeForLog(error)}`);
}

// ---- what handlers find in globalThis.awslambda ----

class HttpResponseStream {
  static from(stream, prelude) {
    stream.setContentType(PRELUDE_TYPE);
    stream.prelude = Buffer.concat([Buffer.from(JSON.stringify(prelude)), Buffer.alloc(8)]);
    return stream;
  }
}

// By which SDKs find out for which event they send a request.
const KEYS = {
  REQUEST_ID: Symbol.for('_AWS_LAMBDA_REQUEST_ID'),
  X_RAY_TRACE_ID: Symbol.for('_AWS_LAMBDA_X_RAY_TRACE_ID'),
  TENANT_ID: Symbol.for('_AWS_LAMBDA_TENANT_ID'),
};
const InvokeStore = {
  PROTECTED_KEYS: KEYS,
  run: (context, fn) => fn(),
  getContext: () => invocationNow()?.store,
  hasContext: () => invocationNow() !== undefined,
  get: (key) => invocationNow()?.store[key],
  set: (key, value) => {
    if (Object.values(KEYS).includes(key))
      throw new Error(`Cannot modify protected Lambda context field: ${String(key)}`);
    const invocation = invocationNow();
    if (invocation) invocation.store[key] = value;
  },
  getRequestId: () => invocationNow()?.store[KEYS.REQUEST_ID] ?? '-',
  getXRayTraceId: () => invocationNow()?.store[KEYS.X_RAY_TRACE_ID],
  getTenantId: () => invocationNow()?.store[KEYS.TENANT_ID],
};

function defineGlobals() {
  globalThis.awslambda = {
    streamifyResponse(handler, options) {
      handler[STREAMING] = 'response';
      if (typeof options?.highWaterMark === 'number') handler.highWaterMark = options.highWaterMark;
      return handler;
    },
    HttpResponseStream,
    InvokeStore,
  };
}

// ---- finding the handler ----

// "src/app.api.handler" -> folder "src", file "app", export "api.handler".
function splitHandler(name) {
  if (name.includes('..'))
    throw new RuntimeError('Runtime.MalformedHandlerName', `'${name}' is not a valid handler name. Use absolute ` +
      'paths when specifying root directories in handler names.');
  const folder = path.dirname(name);
  const match = /^([^.]*)\.(.+)$/.exec(path.basename(name));
  if (!match) throw new RuntimeError('Runtime.MalformedHandlerName', 'Bad handler');
  return { folder, file: match[1], member: match[2] };
}

const isFile = (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;

function isModuleByPackage(file) {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const description = path.join(folder, 'package.json');
    if (isFile(description)) {
      try {
        return JSON.parse(fs.readFileSync(description, 'utf8')).type === 'module';
      } catch (error) {
        console.warn(`package.json is not valid JSON: ${description}: ${error.message}`);
        return false;
      }
    }
    if (path.basename(folder) === 'node_modules' || path.dirname(folder) === folder) return false;
  }
}

const importFile = (file) => import(pathToFileURL(file).href);

// The file of a handler; undefined where only Node's own rules may find one.
function moduleFile({ folder, file }) {
  const base = path.resolve(taskRoot, folder, file);
  return [base, `${base}.js`, `${base}.mjs`, `${base}.cjs`].find(isFile);
}

async function loadModule({ folder, file }) {
  const found = moduleFile({ folder, file });
  const require = createRequire(path.join(taskRoot, 'index.js'));
  if (found?.endsWith('.mjs') || (found?.endsWith('.js') && isModuleByPackage(found))) return importFile(found);
  if (found) return require(found);
  return require(require.resolve(path.join(folder, file), { paths: [taskRoot, path.resolve(taskRoot, folder)] }));
}

// What Node prints above a syntax error: the file and line, the line's text, a mark below it. An error that an
// import threw does not tell it: Node keeps it for itself until it prints the error. So another Node is asked, which
// fails in the same way before it runs anything of the function.
function syntaxFrame(error, file) {
  let lines = String(error.stack).split('\n');
  const isOfCompiler = lines.slice(1).every((line) => !/^ +at /.test(line) || line.includes('node:internal/'));
  if (/^SyntaxError/.test(lines[0]) && isOfCompiler && file) {
    const source = `import(${JSON.stringify(pathToFileURL(file).href)})`;
    const { NODE_OPTIONS, ...environment } = env;
    const check = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
      env: environment, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], timeout: SYNTAX_CHECK_MS });
    lines = String(check.stderr).split('\n');
  }
  const end = lines.findIndex((line) => /^SyntaxError/.test(line));
  return end > 0 && /:\d+$/.test(lines[0]) ? lines.slice(0, end).filter((line) => line !== '') : [];
}

function syntaxError(error, file) {
  const frame = syntaxFrame(error, file);
  if (!frame.length) { // JSON.parse and the like: the stack tells where
    const told = new RuntimeError('Runtime.UserCodeSyntaxError', String(error));
    told.stack = `${told.name}: ${error.stack}`;
    return told;
  }
  const place = frame[0].startsWith('file:') ? frame[0].replace(/^(.*)(:\d+)$/, (_, url, line) =>
    fileURLToPath(url) + line) : frame[0];
  const told = new RuntimeError('Runtime.UserCodeSyntaxError', `${error} (${place})`);
  told.stack = [place, ...frame.slice(1), `${told.name}: ${told.message}`].join('\n');
  if (!logsJson) process.stdout.write(`${place}\n${frame.slice(1).join('\n')}\n`);
  return told;
}

async function findHandler(name) {
  const parts = splitHandler(name);
  let found;
  try {
    found = await loadModule(parts);
  } catch (error) {
    if (error instanceof SyntaxError) throw syntaxError(error, moduleFile(parts));
    if (error?.code === 'MODULE_NOT_FOUND' || error?.code === 'ERR_MODULE_NOT_FOUND')
      throw new RuntimeError('Runtime.ImportModuleError', String(error) + missingPackageHint(error));
    throw error;
  }
  for (const member of parts.member.split('.')) found = found?.[member];
  if (found === undefined)
    throw new RuntimeError('Runtime.HandlerNotFound', `${name} is undefined or not exported`);
  if (typeof found !== 'function') throw new RuntimeError('Runtime.HandlerNotFound', `${name} is not a function`);
  return found;
}

// ---- SDKs that are older than AWS_ENDPOINT_URL ----

function hasOldSdk() {
  try {
    createRequire(path.resolve(taskRoot, path.dirname(env._HANDLER || ''), 'index.js')).resolve('aws-sdk');
    return true;
  } catch {
    return false;
  }
}

// The JavaScript SDK v2 (aws-sdk), when it is loaded: its clients of the services that Quipu has. Where the function
// does not have it, nothing is touched.
function pointOldSdk() {
  if (String(env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS).toLowerCase() === 'true' || !hasOldSdk()) return;
  const services = {
    dynamodb: 'DYNAMODB', dynamodbstreams: 'DYNAMODB_STREAMS', lambda: 'LAMBDA', scheduler: 'SCHEDULER',
  };
  const loader = path.join('node_modules', 'aws-sdk', 'lib', 'node_loader.js'); // every way into it leads through this
  const load = Module._extensions['.js'];
  Module._extensions['.js'] = function loadAndPoint(module, filename) {
    load.apply(this, arguments);
    if (!filename.endsWith(loader)) return;
    const { config } = module.require('./core');
    for (const [service, name] of Object.entries(services)) {
      const endpoint = env[`AWS_ENDPOINT_URL_${name}`] || env.AWS_ENDPOINT_URL;
      if (endpoint) config[service] = { endpoint, ...config[service] };
    }
  };
}

// ---- one invocation ----

class Invocation {
  constructor(connection, reply) {
    const { headers } = reply;
    this.connection = connection;
    this.id = headers['lambda-runtime-aws-request-id'];
    this.deadlineMs = Number(headers['lambda-runtime-deadline-ms'] || 0);
    this.traceId = headers['lambda-runtime-trace-id'];
    this.headers = headers;
    this.body = reply.body;
    this.waitsForEmptyEventLoop = true;
    this.store = { [KEYS.REQUEST_ID]: this.id, [KEYS.X_RAY_TRACE_ID]: this.traceId };
    this.done = new Promise((resolve, reject) => {
      this.succeed = resolve;
      this.fail = reject;
    });
    this.done.catch(() => {}); // it may come when the answer is decided already
  }

  context() {
    const invocation = this;
    const json = (name) => (this.headers[name] ? JSON.parse(this.headers[name]) : undefined);
    const done = (error, result) => {
      this.waitsForEmptyEventLoop = false;
      this.callback(error, result);
    };
    return {
      get callbackWaitsForEmptyEventLoop() {
        return invocation.waitsForEmptyEventLoop;
      },
      set callbackWaitsForEmptyEventLoop(value) {
        invocation.waitsForEmptyEventLoop = Boolean(value);
      },
      functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION,
      functionName: env.AWS_LAMBDA_FUNCTION_NAME,
      memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
      logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME,
      logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME,
      clientContext: json('lambda-runtime-client-context'),
      identity: json('lambda-runtime-cognito-identity'),
      invokedFunctionArn: this.headers['lambda-runtime-invoked-function-arn'],
      awsRequestId: this.id,
      tenantId: this.headers['lambda-runtime-aws-tenant-id'],
      getRemainingTimeInMillis: () => this.deadlineMs - Date.now(),
      done,
      fail: (error) => done(error === undefined || error === null ? 'handled' : error),
      succeed: (result) => done(null, result),
    };
  }

  // The first call counts. With an error the answer does not wait, as on Lambda.
  callback(error, result) {
    if (this.isCalledBack) return;
    this.isCalledBack = true;
    const settle = error === undefined || error === null ? () => this.succeed(result) : () => this.fail(error);
    if (this.waitsForEmptyEventLoop && concurrency === 1 && !error) this.atEmptyLoop = settle;
    else settle();
  }

  // Nothing is left that could call back: what was called back counts, else the answer is null.
  loopIsEmpty() {
    const settle = this.atEmptyLoop ?? (() => this.succeed(null));
    this.atEmptyLoop = undefined;
    settle();
  }

  async call(handler) {
    const context = this.context();
    const event = JSON.parse(this.body);
    if (handler[STREAMING]) {
      await this.stream(handler, event, context);
      return;
    }
    const returned = handler(event, context, (error, result) => this.callback(error, result));
    if (typeof returned?.then === 'function')
      returned.then((result) => this.isCalledBack || this.succeed(result),
        (error) => this.isCalledBack || this.fail(error));
    const result = await this.done;
    await this.respond(result);
  }

  async respond(result) {
    let text;
    try {
      text = JSON.stringify(result === undefined ? null : result);
      if (text === undefined) text = 'null';
    } catch {
      throw new Error('Unable to stringify response body');
    }
    await this.connection.post(`/invocation/${this.id}/response`, { 'Content-Type': 'application/json' }, text);
  }

  async stream(handler, event, context) {
    const stream = new ResponseStream(this, handler.highWaterMark);
    const ended = new Promise((resolve) => stream.once('finish', resolve));
    try {
      const returned = Promise.resolve(handler(event, stream, context));
      await Promise.race([returned, this.done]); // `done`: nothing is left that could go on
      if (!stream.writableEnded) await Promise.race([ended, this.done]);
      if (!stream.writableEnded) stream.end();
      await ended;
    } catch (error) {
      if (!stream.hasBegun) throw error;
      this.log(error);
      stream.abort(error);
    }
    await stream.reply;
  }

  log(error) {
    logError('Invoke Error', error);
  }

  async run(handler) {
    try {
      await this.call(handler);
    } catch (error) {
      this.log(error);
      await postError(this.connection, `/invocation/${this.id}/error`, error);
    }
  }
}

const asText = (chunk) => (typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk : JSON.stringify(chunk));

// The answer as a chunked request: begun by the first byte, ended by the handler, or broken off by an error that
// stands in the trailers.
class ResponseStream extends Writable {
  constructor(invocation, highWaterMark) {
    super({ highWaterMark, decodeStrings: true });
    this.invocation = invocation;
    this.contentType = 'application/octet-stream';
    this.hasBegun = false;
  }

  setContentType(type) {
    this.contentType = type;
  }

  begin() {
    if (this.hasBegun) return;
    this.hasBegun = true;
    const { connection, id } = this.invocation;
    const socket = connection.open();
    socket.write(connection.head('POST', `/invocation/${id}/response`, {
      'Content-Type': headerText(this.contentType),
      'Lambda-Runtime-Function-Response-Mode': 'streaming',
      'Transfer-Encoding': 'chunked',
      Trailer: 'Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body',
    }));
    this.reply = connection.reply();
    this.reply.catch(() => {}); // whoever waits for it hears of it
    this.socket = socket;
    if (this.prelude) this.chunk(this.prelude);
  }

  chunk(bytes, done) {
    if (!bytes.length) return done?.();
    this.socket.cork();
    this.socket.write(bytes.length.toString(16) + CRLF);
    this.socket.write(bytes);
    this.socket.write(CRLF, done);
    return this.socket.uncork();
  }

  // As on Lambda, what is neither text nor bytes is written as JSON.
  write(chunk, ...more) {
    return super.write(asText(chunk), ...more);
  }

  end(chunk, ...more) {
    return super.end(chunk === undefined || chunk === null || typeof chunk === 'function' ? chunk : asText(chunk),
      ...more);
  }

  _write(bytes, encoding, done) {
    this.begin();
    this.chunk(bytes, done);
  }

  _final(done) {
    this.begin();
    this.socket.write(`0${CRLF}${CRLF}`, done);
    this.invocation.connection.ref();
  }

  abort(error) {
    const body = describe(error);
    const encoded = Buffer.from(JSON.stringify(body)).toString('base64');
    this.socket.write(`0${CRLF}Lambda-Runtime-Function-Error-Type: ${headerText(body.errorType)}${CRLF}` +
      `Lambda-Runtime-Function-Error-Body: ${encoded}${CRLF}${CRLF}`);
    this.invocation.connection.ref();
    this.destroy();
  }
}

// ---- the life of the process ----

async function next(connection) {
  const reply = await connection.get('/invocation/next');
  if (reply.status !== 200) process.exit(reply.status === 410 ? 0 : 1); // we are not wanted any more
  return new Invocation(connection, reply);
}

async function serve(connection, handler) {
  for (;;) {
    const invocation = await next(connection);
    connection.unref();
    if (concurrency > 1) {
      await current.run(invocation, () => invocation.run(handler));
      continue;
    }
    onlyInvocation = invocation;
    if (invocation.traceId) env._X_AMZN_TRACE_ID = invocation.traceId;
    else delete env._X_AMZN_TRACE_ID;
    await invocation.run(handler);
    onlyInvocation = undefined;
  }
}

// An error that nobody caught ends the process; it is told as the error of the invocation, or of the start.
function endWith(error, words, status) {
  const invocation = invocationNow();
  if (endWith.isUnderWay) return;
  endWith.isUnderWay = true;
  logError(words, error);
  const target = invocation ? `/invocation/${invocation.id}/error` : '/init/error';
  if (!invocation && isRunning) process.exit(status);
  const connection = new Connection(env.AWS_LAMBDA_RUNTIME_API);
  const exit = () => process.exit(status);
  postError(connection, target, error).then(exit, exit);
}

function catchTheUncaught() {
  process.on('uncaughtException', (error) => endWith(error, 'Uncaught Exception', EXIT_UNCAUGHT_EXCEPTION));
  process.on('unhandledRejection', (reason) => {
    const message = isError(reason) ? reason.message : String(reason);
    const error = new RuntimeError('Runtime.UnhandledPromiseRejection', message);
    error.stack = isError(reason) ? reason.stack : error.stack;
    error.reason = describe(reason);
    const end = () => endWith(error, 'Unhandled Promise Rejection', EXIT_UNHANDLED_REJECTION);
    if (isRunning) {
      end();
      return;
    }
    early ??= end; // an import that fails may be told here first, though we wait for it: its own error counts
    setTimeout(end, EARLY_MS);
  });
  process.on('beforeExit', () => onlyInvocation?.loopIsEmpty());
}

function putTaskRootOnPath() {
  const folders = [env.NODE_PATH, path.join(taskRoot, 'node_modules'), taskRoot, sharedModules];
  env.NODE_PATH = folders.filter(Boolean).join(path.delimiter);
  Module._initPaths();
}

// An import does not look at NODE_PATH: a hook looks for what it does not find in the layers and the shared folder.
// The older kind of hook costs a thread, so there is none where nothing could be found.
function shareModulesWithImports() {
  const folders = [layers && path.join(layers, 'nodejs', 'node_modules'), sharedModules];
  const parents = folders.filter((folder) => folder && fs.existsSync(folder))
    .map((folder) => pathToFileURL(path.join(path.dirname(folder), 'index.js')).href);
  if (!parents.length) return;
  const isMissing = (error, name) => error?.code === 'ERR_MODULE_NOT_FOUND' && /^[^./][^:]*$/.test(name);
  if (typeof Module.registerHooks === 'function') {
    Module.registerHooks({ resolve(name, context, next) {
      try {
        return next(name, context);
      } catch (error) {
        if (!isMissing(error, name)) throw error;
        for (const parentURL of parents) {
          try {
            return next(name, { ...context, parentURL });
          } catch {
            // the next folder may have it
          }
        }
        throw error;
      }
    } });
  } else if (typeof Module.register === 'function') {
    const source = `const isMissing = ${isMissing};
      export const resolve = (name, context, next) => next(name, context).catch(async (error) => {
        if (!isMissing(error, name)) throw error;
        for (const parentURL of ${JSON.stringify(parents)}) {
          try {
            return await next(name, { ...context, parentURL });
          } catch {}
        }
        throw error;
      });`;
    Module.register(`data:text/javascript,${encodeURIComponent(source)}`);
  }
}

// Lambda's Node has AWS's SDK built in; ours has it where somebody put it.
function missingPackageHint(error) {
  const name = /Cannot find (?:package|module) '(@(?:aws-sdk|smithy)\/[^/']+)/.exec(error.message)?.[1];
  if (!name || !sharedModules) return '';
  const folder = path.dirname(sharedModules);
  return `\nLambda has ${name} built in; here: npm install --prefix ${folder} ${name}`;
}

// Under `quipu function debug` the process waits for a debugger before it loads anything of the function.
async function waitForDebugger() {
  const inspector = await import('node:inspector');
  if (!inspector.url()) inspector.open(Number(env.QUIPU_DEBUG_PORT), '127.0.0.1', false);
  if (!inspector.url())
    throw new RuntimeError('Runtime.DebuggerError', `The debugger's port ${env.QUIPU_DEBUG_PORT} is taken`);
  inspector.waitForDebugger();
}

async function main() {
  const connection = new Connection(env.AWS_LAMBDA_RUNTIME_API);
  patchConsole();
  defineGlobals();
  putTaskRootOnPath();
  pointOldSdk();
  shareModulesWithImports();
  catchTheUncaught();
  let handler;
  try {
    if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN)
      throw new RuntimeError('Runtime.InvalidRuntime', `This Node.js is ${process.version}; functions need version ` +
        `${NODE_MAJOR_MIN} or later`);
    if (env.QUIPU_DEBUG_PORT) await waitForDebugger();
    handler = await findHandler(env._HANDLER || '');
    await new Promise(setImmediate); // what the module rejected without a catch is told by then
    early?.();
    if (endWith.isUnderWay) return;
  } catch (error) {
    logError('Uncaught Exception', error);
    await postError(connection, '/init/error', error).catch(() => {});
    process.exit(1);
  }
  isRunning = true;
  const connections = [connection];
  while (connections.length < concurrency) connections.push(new Connection(env.AWS_LAMBDA_RUNTIME_API));
  await Promise.all(connections.map((each) => serve(each, handler)));
}

main().catch((error) => {
  process.stdout.write(`The Runtime API cannot be reached: ${error.message}\n`);
  process.exit(1);
});
