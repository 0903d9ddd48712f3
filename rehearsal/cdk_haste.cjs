// Loaded into the CDK CLI by rehearsal/cdk.py: it looks every 5 s whether a stack is done, and here most are
// done sooner. Nothing else of it is touched, nor any other Node process that it starts.
const CLI_POLLS_MS = 5000;
const POLLS_MS = 500;

if (require("node:path").basename(process.argv[1] ?? "") === "cdk") {
  globalThis.setTimeout = new Proxy(globalThis.setTimeout, {
    apply: (wait, self, [then, milliseconds, ...rest]) =>
      wait.call(self, then, milliseconds === CLI_POLLS_MS ? POLLS_MS : milliseconds, ...rest),
  });
}
