"""The smallest possible CDK app in Python: one stack with the one resource that a template must have."""

import aws_cdk

app = aws_cdk.App()
stack = aws_cdk.Stack(app, "Empty")
aws_cdk.CfnWaitConditionHandle(stack, "Nothing")
app.synth()
