"""The least that a CDK app in Python can be: one stack with nothing in it."""

import aws_cdk

app = aws_cdk.App()
aws_cdk.Stack(app, "Empty")
app.synth()
