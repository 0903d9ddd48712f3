// Loaded into the CDK CLI by rehearsal/cdk.py: shortens its interval of 5 s for polling a stack, since most stacks
// finish sooner here. Nothing else of the CLI changes, nor any other Node process that it starts.
const CLI_POLLS_MS = 5000;
const POLLS_MS = 500;

if (require("node:path").basename(process.argv[1] ?? "") === "cdk") {
  globalThis.setTimeout = new Proxy(globalThis.setTimeout, {
    apply: (wait, self, [then, milliseconds, ...rest]) =>
      wait.call(self, then, milliseconds === CLI_POLLS_MS ? POLLS_MS : milliseconds, ...rest),
  });
}
