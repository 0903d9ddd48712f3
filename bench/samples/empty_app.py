"""The least that a CDK app in Python can be: one stack, with the one thing that a template must have."""

import aws_cdk

app = aws_cdk.App()
stack = aws_cdk.Stack(app, "Empty")
aws_cdk.CfnWaitConditionHandle(stack, "Nothing")
app.synth()
